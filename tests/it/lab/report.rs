//! The lab's report in Chromium, driven by WebDriver: its layout, its script, and its use by
//! keyboard. Tests of its content are in the crate that creates it.

mod browser;

use std::fs;
use std::path::PathBuf;

use serde_json::json;
use testbed::Requirement;

use crate::support::command::{CommandOutput, comporta_program};
use crate::support::context::{SystemTest, TestContext, TestError, TestResult, tests};
use browser::BrowserSession;

pub(crate) const TESTS: &[SystemTest] = tests![
    report_fits_its_window_without_console_errors,
    report_series_are_hidden_and_tables_are_sorted,
    report_values_are_selected_by_keyboard,
    report_is_complete_without_scripts,
];

/// Keys of WebDriver.
const TAB: &str = "\u{e004}";
const RIGHT: &str = "\u{e014}";

/// Creates a report of stored records, and opens it in a browser.
fn open_report(context: &TestContext) -> Result<BrowserSession<'_>, TestError> {
    for (program, package) in [
        ("chromium", "chromium"),
        ("chromedriver", "chromium-driver"),
    ] {
        let requirement = Requirement::Program { program, package };
        testbed::check(&[requirement]).map_err(|missing| TestError::Skip(missing.to_string()))?;
    }
    let records = include_str!("report/records.jsonl");
    fs::write(context.directory().join("records.jsonl"), records)?;
    let texts = comporta_program().args(["lab", "report"]);
    CommandOutput::run(context, texts.arg(context.directory()))?.expect_success()?;
    let browser = BrowserSession::start(context)?;
    browser.open(&context.directory().join("report.html"))?;
    Ok(browser)
}

/// Saves a screenshot for inspection.
fn save_screenshot(browser: &BrowserSession<'_>, name: &str) -> TestResult {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("report");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join(format!("{name}.png")), browser.screenshot()?)?;
    Ok(())
}

fn report_fits_its_window_without_console_errors(context: &TestContext) -> TestResult {
    let browser = open_report(context)?;
    for (name, width, scheme) in [
        ("wide", 1200, "light"),
        ("dark", 1200, "dark"),
        ("narrow", 400, "light"),
    ] {
        browser.size(width, 1400)?;
        let feature = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        browser.devtools("Emulation.setEmulatedMedia", &json!({"features": feature}))?;
        let beyond = browser.number(
            "const page = document.documentElement; return page.scrollWidth - page.clientWidth",
        )?;
        assert_eq!(beyond, 0.0, "{name}: pixels outside of the window");
        let light = browser.number(
            "return Number(/\\d+/.exec(getComputedStyle(document.body).backgroundColor)[0])",
        )?;
        assert_eq!(light < 128.0, scheme == "dark", "{name}: {light}");
        save_screenshot(&browser, name)?;
    }
    let texts = browser.text(
        "return [...document.querySelectorAll('svg text')].filter((one) => { \
           const [text, frame] = [one.getBoundingClientRect(), one.closest('svg').getBoundingClientRect()]; \
           return text.left < frame.left - 1 || text.right > frame.right + 1; }).map((one) => one.textContent).join('; ')",
    )?;
    assert_eq!(texts, "", "texts outside of their drawing");
    assert_eq!(browser.console_errors()?, Vec::<String>::new());
    Ok(())
}

fn report_series_are_hidden_and_tables_are_sorted(context: &TestContext) -> TestResult {
    let browser = open_report(context)?;
    let visible = "return [...document.querySelectorAll('figure:has(.legend) g.series')] \
        .filter((one) => one.closest('figure') === document.querySelector('figure:has(.legend)') \
                         && getComputedStyle(one).display !== 'none').length";
    let before = browser.number(visible)?;
    browser.click("figure:has(.legend) .legend button")?;
    let pressed = "return document.querySelector('.legend button').getAttribute('aria-pressed')";
    assert_eq!(browser.text(pressed)?, "false");
    let off = browser.number(visible)?;
    assert!(off < before, "{off} of {before} series");
    save_screenshot(&browser, "series-off")?;
    browser.click("figure:has(.legend) .legend button")?;
    assert_eq!(browser.number(visible)?, before);

    let names = "return [...document.querySelectorAll('#glance .sheet:not(details *) tbody th')].map((one) => one.innerText).join('|')";
    let order = browser.text(names)?;
    let mut sorted: Vec<&str> = order.split('|').collect();
    sorted.sort_unstable_by_key(|name| name.to_lowercase());
    browser.click("#glance .sheet:not(details *) thead th:first-child button")?;
    assert_eq!(browser.text(names)?, sorted.join("|"));
    sorted.reverse();
    browser.click("#glance .sheet:not(details *) thead th:first-child button")?;
    assert_eq!(browser.text(names)?, sorted.join("|"));
    let direction =
        "return document.querySelector('#glance th[aria-sort]').getAttribute('aria-sort')";
    assert_eq!(browser.text(direction)?, "descending");
    browser.click("#glance .sheet:not(details *) .tools button")?;
    assert_eq!(browser.console_errors()?, Vec::<String>::new());
    Ok(())
}

fn report_values_are_selected_by_keyboard(context: &TestContext) -> TestResult {
    let browser = open_report(context)?;
    let selected = "return document.activeElement?.matches('figure:has(.legend) .point') \
        ? document.activeElement.getAttribute('aria-label') : ''";
    let mut label = String::new();
    for _ in 0..60 {
        browser.press(TAB)?;
        label = browser.text(selected)?;
        if !label.is_empty() {
            break;
        }
    }
    assert!(
        label.starts_with("comporta, ") && label.ends_with(" µs"),
        "{label}"
    );
    let line = "return document.querySelector('[aria-live]').textContent";
    assert_eq!(browser.text(line)?, label);
    browser.press(RIGHT)?;
    let next = browser.text(selected)?;
    assert!(!next.is_empty() && next != label, "{next}");
    assert_eq!(browser.text(line)?, next);
    save_screenshot(&browser, "value-selected")?;
    Ok(())
}

fn report_is_complete_without_scripts(context: &TestContext) -> TestResult {
    let browser = open_report(context)?;
    browser.devtools(
        "Emulation.setScriptExecutionDisabled",
        &json!({"value": true}),
    )?;
    browser.reload()?;
    // Scripts of WebDriver still run.
    assert_eq!(
        browser.number("return document.querySelectorAll('button').length")?,
        0.0
    );
    let title = "return document.querySelector('.point title').textContent.trim()";
    assert!(
        browser
            .text(title)?
            .starts_with("OpenFlow mode and legacy mode: ")
    );
    browser.devtools("Emulation.setEmulatedMedia", &json!({"media": "print"}))?;
    let hidden = browser.number(
        "return [...document.querySelectorAll('figure')].filter((one) => one.getBoundingClientRect().height < 50).length",
    )?;
    assert_eq!(hidden, 0.0, "drawings that are not printed");
    let closed = browser.number(
        "return [...document.querySelectorAll('details')].filter((one) => \
           one.lastElementChild.getBoundingClientRect().height < 10).length",
    )?;
    assert_eq!(closed, 0.0, "texts that are not printed");
    save_screenshot(&browser, "print")?;
    Ok(())
}
