//! The lab's report in a browser: Chromium, driven by WebDriver. Whether it fits, whether the
//! script does what it should, and by keyboard alone. What the report says is tested where it
//! is made.

mod browser;

use std::fs;
use std::path::PathBuf;

use serde_json::json;
use testbed::{Program, Requirement};

use crate::support::command::{CommandOutput, comporta_binary};
use crate::support::context::{SystemTest, TestContext, TestError, TestResult, tests};
use browser::Browser;

pub(crate) const TESTS: &[SystemTest] = tests![
    a_report_fits_its_window_and_complains_of_nothing,
    series_go_off_and_tables_are_sorted,
    a_value_is_read_by_keyboard,
    a_report_is_whole_without_scripts,
];

/// The keys of WebDriver.
const TAB: &str = "\u{e004}";
const RIGHT: &str = "\u{e014}";

/// A report of records that were measured once, in a browser.
fn open(context: &TestContext) -> Result<Browser<'_>, TestError> {
    for (program, package) in [
        ("chromium", "chromium"),
        ("chromedriver", "chromium-driver"),
    ] {
        let needed = Requirement::Program { program, package };
        testbed::check(&[needed]).map_err(|missing| TestError::Skip(missing.to_string()))?;
    }
    let records = include_str!("report/records.jsonl");
    fs::write(context.directory().join("records.jsonl"), records)?;
    let words = Program::new(comporta_binary()).args(["lab", "report"]);
    CommandOutput::run(context, words.arg(context.directory()))?.expect_success()?;
    let browser = Browser::start(context)?;
    browser.go(&context.directory().join("report.html"))?;
    Ok(browser)
}

/// Keeps what the browser shows, for people to look at.
fn keep(browser: &Browser<'_>, name: &str) -> TestResult {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("report");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join(format!("{name}.png")), browser.screenshot()?)?;
    Ok(())
}

fn a_report_fits_its_window_and_complains_of_nothing(context: &TestContext) -> TestResult {
    let browser = open(context)?;
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
        assert_eq!(beyond, 0.0, "{name}: pixels beyond the window");
        let light = browser.number(
            "return Number(/\\d+/.exec(getComputedStyle(document.body).backgroundColor)[0])",
        )?;
        assert_eq!(light < 128.0, scheme == "dark", "{name}: {light}");
        keep(&browser, name)?;
    }
    let words = browser.text(
        "return [...document.querySelectorAll('svg text')].filter((one) => { \
           const [text, frame] = [one.getBoundingClientRect(), one.closest('svg').getBoundingClientRect()]; \
           return text.left < frame.left - 1 || text.right > frame.right + 1; }).map((one) => one.textContent).join('; ')",
    )?;
    assert_eq!(words, "", "words that leave their drawing");
    assert_eq!(browser.complaints()?, Vec::<String>::new());
    Ok(())
}

fn series_go_off_and_tables_are_sorted(context: &TestContext) -> TestResult {
    let browser = open(context)?;
    let seen = "return [...document.querySelectorAll('figure:has(.legend) g.series')] \
        .filter((one) => one.closest('figure') === document.querySelector('figure:has(.legend)') \
                         && getComputedStyle(one).display !== 'none').length";
    let before = browser.number(seen)?;
    browser.click("figure:has(.legend) .legend button")?;
    let pressed = "return document.querySelector('.legend button').getAttribute('aria-pressed')";
    assert_eq!(browser.text(pressed)?, "false");
    let off = browser.number(seen)?;
    assert!(off < before, "{off} of {before} series");
    keep(&browser, "series-off")?;
    browser.click("figure:has(.legend) .legend button")?;
    assert_eq!(browser.number(seen)?, before);

    let names = "return [...document.querySelectorAll('#glance .sheet:not(details *) tbody th')].map((one) => one.innerText).join('|')";
    let order = browser.text(names)?;
    let mut sorted: Vec<&str> = order.split('|').collect();
    sorted.sort_unstable_by_key(|name| name.to_lowercase());
    browser.click("#glance .sheet:not(details *) thead th:first-child button")?;
    assert_eq!(browser.text(names)?, sorted.join("|"));
    sorted.reverse();
    browser.click("#glance .sheet:not(details *) thead th:first-child button")?;
    assert_eq!(browser.text(names)?, sorted.join("|"));
    let told = "return document.querySelector('#glance th[aria-sort]').getAttribute('aria-sort')";
    assert_eq!(browser.text(told)?, "descending");
    browser.click("#glance .sheet:not(details *) .tools button")?;
    assert_eq!(browser.complaints()?, Vec::<String>::new());
    Ok(())
}

fn a_value_is_read_by_keyboard(context: &TestContext) -> TestResult {
    let browser = open(context)?;
    let chosen = "return document.activeElement?.matches('figure:has(.legend) .point') \
        ? document.activeElement.getAttribute('aria-label') : ''";
    let mut told = String::new();
    for _ in 0..60 {
        browser.press(TAB)?;
        told = browser.text(chosen)?;
        if !told.is_empty() {
            break;
        }
    }
    assert!(
        told.starts_with("comporta, ") && told.ends_with(" µs"),
        "{told}"
    );
    let line = "return document.querySelector('[aria-live]').textContent";
    assert_eq!(browser.text(line)?, told);
    browser.press(RIGHT)?;
    let next = browser.text(chosen)?;
    assert!(!next.is_empty() && next != told, "{next}");
    assert_eq!(browser.text(line)?, next);
    keep(&browser, "value-told")?;
    Ok(())
}

fn a_report_is_whole_without_scripts(context: &TestContext) -> TestResult {
    let browser = open(context)?;
    browser.devtools(
        "Emulation.setScriptExecutionDisabled",
        &json!({"value": true}),
    )?;
    browser.reload()?;
    // WebDriver's own scripts still run.
    assert_eq!(
        browser.number("return document.querySelectorAll('button').length")?,
        0.0
    );
    let told = "return document.querySelector('.point title').textContent.trim()";
    assert!(
        browser
            .text(told)?
            .starts_with("OpenFlow against legacy mode: ")
    );
    browser.devtools("Emulation.setEmulatedMedia", &json!({"media": "print"}))?;
    let hidden = browser.number(
        "return [...document.querySelectorAll('figure')].filter((one) => one.getBoundingClientRect().height < 50).length",
    )?;
    assert_eq!(hidden, 0.0, "drawings that paper does not show");
    let closed = browser.number(
        "return [...document.querySelectorAll('details')].filter((one) => \
           one.lastElementChild.getBoundingClientRect().height < 10).length",
    )?;
    assert_eq!(closed, 0.0, "texts that paper does not show");
    keep(&browser, "print")?;
    Ok(())
}
