//! Pages of metrics.

use gymrun::collector::fuzzing::scrape;

use super::otlp::sound;

const TEXT: &str = "text/plain; version=0.0.4";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0";

/// Arbitrary bytes as a page, in both dialects: scraped twice, then gone.
///
/// Every scrape makes valid points; a page that is refused leaves its report alone, and what was refused once is refused
/// again.
pub fn exposition(input: &[u8]) {
    for content_type in [TEXT, OPEN_METRICS] {
        let empty: &[u8] = if content_type == TEXT { b"\n" } else { b"# EOF\n" };
        let scraped = scrape(&[input, input, empty], content_type);
        for (place, scraped) in scraped.iter().enumerate() {
            sound(&scraped.payload);
            assert!(scraped.payload.item_count() >= 5, "the report is always there");
            if scraped.error.is_some() && place == 0 {
                assert_eq!(scraped.payload.item_count(), 5, "a broken page has no samples");
            }
        }
        assert_eq!(scraped[0].error, scraped[1].error, "the same page twice");
        assert_eq!(scraped[2].error, None, "a good page after a broken one");
    }
}
