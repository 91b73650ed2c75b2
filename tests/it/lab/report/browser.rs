//! A headless browser, driven by W3C WebDriver: JSON requests by HTTP.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use testbed::{Failure, Process, Program};

use crate::support::context::{TestContext, TestError};

/// Longest duration of a request.
const REQUEST_LIMIT: Duration = Duration::from_secs(20);

/// The WebDriver process, and a session.
pub(super) struct BrowserSession<'g> {
    _driver: Process,
    port: u16,
    session: String,
    _ground: &'g TestContext,
}

impl<'g> BrowserSession<'g> {
    /// Starts the driver and a browser.
    pub(super) fn start(context: &'g TestContext) -> Result<Self, TestError> {
        let program = Program::new("chromedriver")
            .arg("--port=0")
            .output(context.unique_path("driver"));
        let driver = context.spawner.start(program)?;
        let port = context.wait_for("the WebDriver to listen", || {
            Ok(driver_port(&driver.written()?))
        })?;
        let mut browser = Self {
            _driver: driver,
            port,
            session: String::new(),
            _ground: context,
        };
        let options = json!({"args": ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]});
        let capabilities =
            json!({"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}});
        let request = json!({"capabilities": {"alwaysMatch": capabilities}});
        let reply = browser.post("/session", &request)?;
        let id = reply["sessionId"].as_str().unwrap_or_default();
        browser.session = format!("/session/{id}");
        Ok(browser)
    }

    pub(super) fn open(&self, file: &Path) -> Result<(), TestError> {
        self.command("url", &json!({"url": format!("file://{}", file.display())}))?;
        Ok(())
    }

    pub(super) fn reload(&self) -> Result<(), TestError> {
        self.command("refresh", &json!({}))?;
        Ok(())
    }

    /// Sets the size of the viewport in CSS pixels.
    pub(super) fn size(&self, width: u32, height: u32) -> Result<(), TestError> {
        let metrics =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.devtools("Emulation.setDeviceMetricsOverride", &metrics)?;
        Ok(())
    }

    /// Sends a command of the DevTools protocol.
    pub(super) fn devtools(&self, command: &str, parameters: &Value) -> Result<Value, TestError> {
        self.command(
            "goog/cdp/execute",
            &json!({"cmd": command, "params": parameters}),
        )
    }

    /// Runs a script, and returns its value.
    fn script(&self, script: &str) -> Result<Value, TestError> {
        self.command("execute/sync", &json!({"script": script, "args": []}))
    }

    pub(super) fn number(&self, script: &str) -> Result<f64, TestError> {
        let value = self.script(script)?;
        value
            .as_f64()
            .ok_or_else(|| TestError::Fail(format!("{script}: {value}")))
    }

    pub(super) fn text(&self, script: &str) -> Result<String, TestError> {
        let value = self.script(script)?;
        let text = value.as_str().map(ToOwned::to_owned);
        text.ok_or_else(|| TestError::Fail(format!("{script}: {value}")))
    }

    /// Clicks an element, which must be visible and not covered.
    pub(super) fn click(&self, selector: &str) -> Result<(), TestError> {
        let found = self.command(
            "element",
            &json!({"using": "css selector", "value": selector}),
        )?;
        let id = found
            .as_object()
            .and_then(|all| all.values().next()?.as_str());
        let id = id.ok_or_else(|| TestError::Fail(format!("{selector}: {found}")))?;
        self.command(&format!("element/{id}/click"), &json!({}))?;
        Ok(())
    }

    pub(super) fn press(&self, key: &str) -> Result<(), TestError> {
        let strokes = json!([{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]);
        let keys = json!({"type": "key", "id": "keys", "actions": strokes});
        self.command("actions", &json!({"actions": [keys]}))?;
        Ok(())
    }

    /// Errors and warnings of the console since the last call.
    pub(super) fn console_errors(&self) -> Result<Vec<String>, TestError> {
        let log = self.command("se/log", &json!({"type": "browser"}))?;
        let lines = log.as_array().into_iter().flatten();
        let lines = lines.filter(|line| line["level"] == "SEVERE" || line["level"] == "WARNING");
        Ok(lines.map(|line| line["message"].to_string()).collect())
    }

    /// Screenshot as a PNG.
    pub(super) fn screenshot(&self) -> Result<Vec<u8>, TestError> {
        let reply = self.devtools(
            "Page.captureScreenshot",
            &json!({"captureBeyondViewport": true}),
        )?;
        Ok(STANDARD.decode(reply["data"].as_str().unwrap_or_default())?)
    }

    fn command(&self, command: &str, body: &Value) -> Result<Value, TestError> {
        self.post(&format!("{}/{command}", self.session), body)
    }

    fn post(&self, path: &str, body: &Value) -> Result<Value, TestError> {
        let response = self.exchange("POST", path, &body.to_string());
        let response = response.map_err(Failure::to("send a request to the browser"))?;
        let (_, body) = response.split_once("\r\n\r\n").unwrap_or_default();
        let reply: Value = serde_json::from_str(body)?;
        let value = reply["value"].clone();
        match value["error"].as_str() {
            Some(error) => Err(TestError::Fail(format!(
                "{path}: {error}: {}",
                value["message"]
            ))),
            None => Ok(value),
        }
    }

    /// Sends one request by its own connection: the response ends with the connection or after its
    /// content length.
    fn exchange(&self, method: &str, path: &str, body: &str) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(REQUEST_LIMIT))?;
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(format!("{head}{body}").as_bytes())?;
        let mut response = Vec::new();
        let mut part = [0; 1 << 16];
        loop {
            let count = stream.read(&mut part)?;
            response.extend_from_slice(&part[..count]);
            if count == 0 || is_complete(&response) {
                return Ok(String::from_utf8_lossy(&response).into_owned());
            }
        }
    }
}

impl Drop for BrowserSession<'_> {
    fn drop(&mut self) {
        // The driver ends its browser; the driver ends with its process.
        let _ = self.exchange("DELETE", &self.session, "");
    }
}

/// True if the response has its content length.
fn is_complete(response: &[u8]) -> bool {
    let text = String::from_utf8_lossy(response);
    let Some((head, _)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let mut lines = head.lines().filter_map(|line| line.split_once(':'));
    let length = lines.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length = length.and_then(|(_, length)| length.trim().parse::<usize>().ok());
    length.is_some_and(|length| response.len() >= head.len() + 4 + length)
}

/// Returns the port on which the driver listens, or `None` if it is not printed yet.
fn driver_port(output: &str) -> Option<u16> {
    let (_, rest) = output.split_once("started successfully on port ")?;
    rest.split('.').next()?.trim().parse().ok()
}
