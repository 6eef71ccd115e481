//! The page itself: its style, its script and its policy, as they are in `assets/`.

use std::fmt::Write;
use std::sync::LazyLock;

use data_encoding::BASE64;
use sha2::{Digest, Sha256};

/// The scripts, in the order in which they become one function. Those of pages come before `main.js`, which starts.
const SCRIPTS: [&str; 18] = [
    include_str!("../../assets/dom.js"),
    include_str!("../../assets/format.js"),
    include_str!("../../assets/data.js"),
    include_str!("../../assets/served.js"),
    include_str!("../../assets/run.js"),
    include_str!("../../assets/list.js"),
    include_str!("../../assets/pictures.js"),
    include_str!("../../assets/body.js"),
    include_str!("../../assets/selection.js"),
    include_str!("../../assets/overview.js"),
    include_str!("../../assets/cases.js"),
    include_str!("../../assets/trials.js"),
    include_str!("../../assets/trial.js"),
    include_str!("../../assets/case.js"),
    include_str!("../../assets/servers.js"),
    include_str!("../../assets/keys.js"),
    include_str!("../../assets/history.js"),
    include_str!("../../assets/compare.js"),
];

const MAIN: &str = include_str!("../../assets/main.js");

const STYLE: &str = include_str!("../../assets/report.css");

/// What the page says without scripts. It is constant: no text of a record is part of the HTML.
const NO_SCRIPT: &str =
    "This report needs JavaScript. As text: <code>proctor result show RUN -o markdown</code>.";

static SCRIPT: LazyLock<String> = LazyLock::new(|| {
    let mut script = "(() => {\n\"use strict\";\n".to_owned();
    for part in SCRIPTS {
        script.push_str(part);
    }
    script.push_str(MAIN);
    script.push_str("})();\n");
    script
});

/// Where a page gets its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageSource {
    /// From its own file.
    Embedded,
    /// From the server that serves it.
    Http,
}

/// The script of the page.
pub fn script() -> &'static str {
    &SCRIPT
}

/// The style sheet of the page.
pub fn style() -> &'static str {
    STYLE
}

/// The content security policy of the page: it runs this script, shows this style, and loads nothing.
pub fn policy(source: PageSource) -> String {
    let hash = |text: &str| BASE64.encode(&Sha256::digest(text));
    let mut policy = format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'",
        hash(script()),
        hash(STYLE)
    );
    if source == PageSource::Http {
        // Writing to a string can't fail.
        let _ = write!(policy, "; connect-src 'self'");
    }
    policy
}

/// The page of a server, which has no data. The policy of its header forbids frames, which one in HTML can't.
pub fn served_page() -> (String, String) {
    let html = format!(
        "{}<script>{}</script>\n</body>\n</html>\n",
        document_start(PageSource::Http),
        script()
    );
    let policy = format!("{}; frame-ancestors 'none'", policy(PageSource::Http));
    (html, policy)
}

/// The document up to the place of its data and its script.
pub fn document_start(source: PageSource) -> String {
    let word = match source {
        PageSource::Embedded => "embedded",
        PageSource::Http => "http",
    };
    format!(
        "<!doctype html>\n<html lang=\"en\" data-source=\"{word}\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n<title>Proctor</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<noscript><p>{NO_SCRIPT}</p></noscript>\n<div id=\"root\"></div>\n",
        policy(source)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_can_stand_in_html() {
        let script = script().to_lowercase();
        for end in ["</script", "<!--", "<script"] {
            assert!(!script.contains(end), "{end}");
        }
        assert!(!STYLE.to_lowercase().contains("</style"));
    }

    #[test]
    fn nothing_is_loaded_from_elsewhere() {
        let both = format!("{}{STYLE}", script());
        let urls = both.matches("http://").count() + both.matches("https://").count();
        // The name space of SVG is a name, not an address.
        assert_eq!(urls, both.matches("http://www.w3.org/2000/svg").count());
        for word in [
            "@import",
            "url(",
            "import(",
            "eval(",
            "new Function",
            "innerHTML",
            "insertAdjacentHTML",
        ] {
            let code: Vec<&str> = both
                .lines()
                .filter(|l| !l.trim_start().starts_with("//"))
                .collect();
            assert!(!code.join("\n").contains(word), "{word}");
        }
    }
}
