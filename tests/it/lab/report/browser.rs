//! A browser without a window, driven by W3C WebDriver: requests of JSON by HTTP.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use testbed::{Failure, Process, Program};

use crate::support::context::{TestContext, TestError};

/// How long the browser may take for one thing.
const WAIT_LIMIT: Duration = Duration::from_secs(20);

/// What runs the browser, and a session with it.
pub(super) struct Browser<'g> {
    _driver: Process,
    port: u16,
    session: String,
    _ground: &'g TestContext,
}

impl<'g> Browser<'g> {
    /// Starts the driver, and a browser that it looks after.
    pub(super) fn start(context: &'g TestContext) -> Result<Self, TestError> {
        let program = Program::new("chromedriver")
            .arg("--port=0")
            .output(context.unique_path("driver"));
        let driver = context.spawner.start(program)?;
        let port = context.wait_for("the browser's driver", || Ok(port(&driver.written()?)))?;
        let mut browser = Self {
            _driver: driver,
            port,
            session: String::new(),
            _ground: context,
        };
        let options = json!({"args": ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]});
        let wanted =
            json!({"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}});
        let asked = json!({"capabilities": {"alwaysMatch": wanted}});
        let told = browser.post("/session", &asked)?;
        let id = told["sessionId"].as_str().unwrap_or_default();
        browser.session = format!("/session/{id}");
        Ok(browser)
    }

    pub(super) fn go(&self, file: &Path) -> Result<(), TestError> {
        self.ask("url", &json!({"url": format!("file://{}", file.display())}))?;
        Ok(())
    }

    pub(super) fn reload(&self) -> Result<(), TestError> {
        self.ask("refresh", &json!({}))?;
        Ok(())
    }

    /// The size of what the page is seen by, in its own pixels.
    pub(super) fn size(&self, width: u32, height: u32) -> Result<(), TestError> {
        let metrics =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.devtools("Emulation.setDeviceMetricsOverride", &metrics)?;
        Ok(())
    }

    /// A command of the browser's own protocol.
    pub(super) fn devtools(&self, command: &str, parameters: &Value) -> Result<Value, TestError> {
        self.ask(
            "goog/cdp/execute",
            &json!({"cmd": command, "params": parameters}),
        )
    }

    /// What a script returns.
    fn script(&self, script: &str) -> Result<Value, TestError> {
        self.ask("execute/sync", &json!({"script": script, "args": []}))
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

    /// Clicks as a person does: what is covered or hidden cannot be clicked.
    pub(super) fn click(&self, selector: &str) -> Result<(), TestError> {
        let found = self.ask(
            "element",
            &json!({"using": "css selector", "value": selector}),
        )?;
        let id = found
            .as_object()
            .and_then(|all| all.values().next()?.as_str());
        let id = id.ok_or_else(|| TestError::Fail(format!("{selector}: {found}")))?;
        self.ask(&format!("element/{id}/click"), &json!({}))?;
        Ok(())
    }

    pub(super) fn press(&self, key: &str) -> Result<(), TestError> {
        let strokes = json!([{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]);
        let keys = json!({"type": "key", "id": "keys", "actions": strokes});
        self.ask("actions", &json!({"actions": [keys]}))?;
        Ok(())
    }

    /// Errors and warnings that the browser wrote to its console since it was asked last.
    pub(super) fn complaints(&self) -> Result<Vec<String>, TestError> {
        let log = self.ask("se/log", &json!({"type": "browser"}))?;
        let lines = log.as_array().into_iter().flatten();
        let lines = lines.filter(|line| line["level"] == "SEVERE" || line["level"] == "WARNING");
        Ok(lines.map(|line| line["message"].to_string()).collect())
    }

    /// What is to be seen, as a PNG.
    pub(super) fn screenshot(&self) -> Result<Vec<u8>, TestError> {
        let told = self.devtools(
            "Page.captureScreenshot",
            &json!({"captureBeyondViewport": true}),
        )?;
        Ok(STANDARD.decode(told["data"].as_str().unwrap_or_default())?)
    }

    fn ask(&self, command: &str, body: &Value) -> Result<Value, TestError> {
        self.post(&format!("{}/{command}", self.session), body)
    }

    fn post(&self, path: &str, body: &Value) -> Result<Value, TestError> {
        let told = self.exchange("POST", path, &body.to_string());
        let told = told.map_err(Failure::to("ask the browser"))?;
        let (_, body) = told.split_once("\r\n\r\n").unwrap_or_default();
        let answer: Value = serde_json::from_str(body)?;
        let value = answer["value"].clone();
        match value["error"].as_str() {
            Some(error) => Err(TestError::Fail(format!(
                "{path}: {error}: {}",
                value["message"]
            ))),
            None => Ok(value),
        }
    }

    /// One request, by a connection of its own: the answer ends where that does, or as long as
    /// its head says.
    fn exchange(&self, method: &str, path: &str, body: &str) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(WAIT_LIMIT))?;
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(format!("{head}{body}").as_bytes())?;
        let mut told = Vec::new();
        let mut part = [0; 1 << 16];
        loop {
            let count = stream.read(&mut part)?;
            told.extend_from_slice(&part[..count]);
            if count == 0 || is_whole(&told) {
                return Ok(String::from_utf8_lossy(&told).into_owned());
            }
        }
    }
}

impl Drop for Browser<'_> {
    fn drop(&mut self) {
        // The driver ends its browser; it is itself ended with its process.
        let _ = self.exchange("DELETE", &self.session, "");
    }
}

/// Whether as much has come as the head says.
fn is_whole(told: &[u8]) -> bool {
    let text = String::from_utf8_lossy(told);
    let Some((head, _)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let mut lines = head.lines().filter_map(|line| line.split_once(':'));
    let length = lines.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length = length.and_then(|(_, length)| length.trim().parse::<usize>().ok());
    length.is_some_and(|length| told.len() >= head.len() + 4 + length)
}

/// The port that the driver says it listens at.
fn port(said: &str) -> Option<u16> {
    let (_, rest) = said.split_once("started successfully on port ")?;
    rest.split('.').next()?.trim().parse().ok()
}
