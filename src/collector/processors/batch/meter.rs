//! What a batch says about itself.

use std::sync::Arc;

use crate::collector::component::Context;
use crate::collector::own::{
    BATCH_BY_SIZE, BATCH_BY_TIME, BATCH_BYTES, BATCH_CARDINALITY, BATCH_SIZE, Buckets, Count, Families, Meters, Number,
    labels,
};
use crate::otlp::Payload;

/// The reference's buckets of items,
const SIZES: &[u64] = &[
    10, 25, 50, 75, 100, 250, 500, 750, 1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000, 10_000, 20_000, 30_000,
    50_000, 100_000,
];
/// and of bytes.
const BYTES: &[u64] = &[
    128, 256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536, 131_072, 262_144, 524_288, 1_048_576, 2_097_152,
    4_194_304, 8_388_608, 16_777_216,
];

/// The counts of one batch in one pipeline.
pub(super) struct BatchMeter {
    sizes: Buckets,
    /// Only if somebody asks: a size in bytes takes time.
    bytes: Option<Buckets>,
    by_size: Count,
    by_time: Count,
}

impl BatchMeter {
    /// Has it say its numbers.
    pub fn register(context: &Context) -> Arc<Self> {
        let meters = context.shared.get::<Meters>();
        let bytes = meters.wanted().then(|| Buckets::new(BYTES));
        let meter = Self { sizes: Buckets::new(SIZES), bytes, by_size: Count::default(), by_time: Count::default() };
        let meter = Arc::new(meter);
        let name = context.name.trim_start_matches("processors/");
        let id = name.split(' ').next().unwrap_or(name).to_owned();
        let counted = meter.clone();
        meters.add(move |families| counted.read(&id, families));
        meter
    }

    /// The size of a batch in bytes, if somebody asks.
    pub fn bytes_of(&self, batch: &Payload) -> Option<usize> {
        self.bytes.as_ref().map(|_| batch.size())
    }

    /// Counts a batch that was taken: the reference does not count those that nobody took.
    pub fn count(&self, items: usize, bytes: Option<usize>, is_full: bool) {
        (if is_full { &self.by_size } else { &self.by_time }).add(1);
        self.sizes.record(items);
        if let Some((buckets, bytes)) = self.bytes.as_ref().zip(bytes) {
            buckets.record(bytes);
        }
    }

    fn read(&self, id: &str, families: &mut Families) {
        let labels = || labels([("processor", id)]);
        families.add(&BATCH_CARDINALITY, labels(), Number::Integer(1));
        for (instrument, count) in [(&BATCH_BY_SIZE, &self.by_size), (&BATCH_BY_TIME, &self.by_time)] {
            if count.get() > 0 {
                families.add(instrument, labels(), Number::Integer(count.get()));
            }
        }
        let bytes = self.bytes.as_ref().and_then(Buckets::get);
        for (instrument, number) in [(&BATCH_SIZE, self.sizes.get()), (&BATCH_BYTES, bytes)] {
            if let Some(number) = number {
                families.add(instrument, labels(), number);
            }
        }
    }
}
