//! Division of `--memory` among the parts of the server.
//!
//! **Invariant:** with `--memory`, the sum of the parts is at most its value. Without any setting, it is at most three
//! quarters of the memory available to the process, or the minimum for a server if that is more.

use bytesize::ByteSize;
use edge::{CONNECTION_BYTES, HANDSHAKE_MEMORY, TLS_BYTES};
use node::NodeOptions;

const MIB: u64 = 1 << 20;
/// Default of `--memory` on a machine with enough memory: the sum of the defaults of the parts.
const DEFAULT: u64 = 2_840 * MIB;
/// Memory that no setting changes: changes that the writer processes, with their effects; log-ins and tokens; 32 MiB
/// for the program itself.
const FIXED: u64 = node::FIXED_MEMORY as u64 + ACCOUNTS + 32 * MIB;
/// Memory for hashing passwords, for bodies, responses and streams of the Mastodon API, and for cached tokens.
const ACCOUNTS: u64 = 80 * MIB;
const _: () = assert!(mastodon::MEMORY as u64 <= ACCOUNTS);
/// Fixed memory that `--archive` adds: the longest group of the log, while it is copied to the archive.
const ARCHIVE: u64 = node::ARCHIVE_MEMORY as u64;
/// Fixed memory that TLS adds: connections in a handshake.
const TLS: u64 = HANDSHAKE_MEMORY as u64;
/// Fixed memory that pictures add: uploads that arrive or wait, and the one that is being converted.
const PICTURES: u64 = node::UPLOAD_MEMORY + mastodon::UPLOAD_MEMORY as u64;
/// Fixed memory that a cluster adds: files exchanged between nodes.
const CLUSTER: u64 = node::EXCHANGE_MEMORY;
/// Fixed memory that the change feed adds: requests of webhooks.
const CHANGES: u64 = webhooks::MEMORY;
/// Factor by which the overlay may exceed its setting while checkpoints run.
const OVERLAY_TIMES: u64 = 4;
/// Memory of the built-in samples.
const SAMPLE_MIN: u64 = node::SAMPLE_MEMORY_MIN as u64;
/// Minimum size of a unit, in bytes. In a smaller unit, a value of maximum length would fit neither a request nor the
/// overlay.
const UNIT_MIN: u64 = 6 * MIB;

const _: () = assert!(SAMPLE_MIN <= 4 * UNIT_MIN);

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Given {
    pub(crate) timeline: Option<ByteSize>,
    pub(crate) post: Option<ByteSize>,
    pub(crate) entity: Option<ByteSize>,
    pub(crate) bucket: Option<ByteSize>,
    pub(crate) sample: Option<ByteSize>,
    pub(crate) store_cache: Option<ByteSize>,
    pub(crate) overlay: Option<ByteSize>,
    pub(crate) request: Option<ByteSize>,
    pub(crate) redis: Option<ByteSize>,
    pub(crate) max_connections: Option<u32>,
    /// Whether the log is archived.
    pub(crate) archive: bool,
    /// Whether HTTP connections use TLS.
    pub(crate) tls: bool,
    /// Whether pictures can be uploaded.
    pub(crate) pictures: bool,
    /// Whether the server is a node of a cluster.
    pub(crate) cluster: bool,
    /// Whether there is a change feed.
    pub(crate) changes: bool,
}

/// Bytes of each part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Memory {
    pub(crate) timeline: u64,
    pub(crate) post: u64,
    /// Cache of the Mastodon API.
    pub(crate) entity: u64,
    pub(crate) bucket: u64,
    pub(crate) sample: u64,
    pub(crate) store_cache: u64,
    /// Setting of the overlay. It may use [`OVERLAY_TIMES`] times as much while checkpoints run.
    pub(crate) overlay: u64,
    pub(crate) request: u64,
    pub(crate) redis: u64,
    /// Memory of HTTP connections, in addition to that of their requests.
    pub(crate) connections: u64,
    /// Bytes of `connections` per connection.
    connection: u64,
    /// Memory that no setting changes.
    pub(crate) fixed: u64,
    /// Memory of the process that converts pictures, in addition to all parts.
    converter: u64,
}

impl Memory {
    /// Divides the memory. With `whole`, parts without a setting share the rest in units (16 for timelines, 12 for
    /// posts and so on). Without `whole`, they get their defaults, or less if only `available` bytes are available to
    /// the process.
    ///
    /// # Errors
    /// If too little is left, or too little is set for samples.
    pub(crate) fn divide(
        whole: Option<ByteSize>,
        given: &Given,
        available: Option<u64>,
    ) -> anyhow::Result<Self> {
        let bytes = |size: Option<ByteSize>| size.map(|size| size.as_u64());
        anyhow::ensure!(
            bytes(given.sample).is_none_or(|sample| sample >= SAMPLE_MIN),
            "--sample-memory must be at least {}MiB, for the built-in digits",
            SAMPLE_MIN / MIB
        );
        let connection = CONNECTION_BYTES as u64 + if given.tls { TLS_BYTES as u64 } else { 0 };
        let connections = given.max_connections.map(|count| u64::from(count) * connection);
        let parts = [
            (16, bytes(given.timeline)),
            (12, bytes(given.post)),
            (8, bytes(given.bucket)),
            (4, bytes(given.sample)),
            (2, bytes(given.store_cache)),
            (2, bytes(given.overlay)),
            (8, bytes(given.request)),
            (8, bytes(given.redis)),
            (6, connections),
            (4, bytes(given.entity)),
        ];
        let more = [
            (given.archive, ARCHIVE),
            (given.tls, TLS),
            (given.pictures, PICTURES),
            (given.cluster, CLUSTER),
            (given.changes, CHANGES),
        ];
        let more: u64 = more.into_iter().filter(|(is_given, _)| *is_given).map(|(_, m)| m).sum();
        let fixed = FIXED + more;
        let unit = match whole {
            Some(whole) => unit((whole.as_u64(), fixed), &parts)?,
            None => {
                let default = unit((DEFAULT, FIXED), &parts.map(|(units, _)| (units, None)))?;
                // A quarter is left to kernel buffers, the page cache and other processes.
                let fitting = available.map(|bytes| unit((bytes / 4 * 3, fixed), &parts));
                fitting.map_or(default, |fitting| fitting.unwrap_or(UNIT_MIN).min(default))
            }
        };
        let [
            timeline,
            post,
            bucket,
            sample,
            store_cache,
            overlay,
            request,
            redis,
            connections,
            entity,
        ] = parts.map(|(units, given)| given.unwrap_or(units * unit));
        Ok(Self {
            timeline,
            post,
            entity,
            bucket,
            sample,
            store_cache,
            overlay,
            request,
            redis,
            connections,
            connection,
            fixed,
            converter: if given.pictures { node::CONVERTER_MEMORY } else { 0 },
        })
    }

    /// Settings of memory, with the values in effect.
    pub(crate) fn settings(&self) -> [(&'static str, String); 10] {
        let sizes = [
            ("memory", self.total()),
            ("timeline-memory", self.timeline),
            ("post-memory", self.post),
            ("entity-memory", self.entity),
            ("bucket-memory", self.bucket),
            ("sample-memory", self.sample),
            ("store-cache", self.store_cache),
            ("overlay-memory", self.overlay),
            ("request-memory", self.request),
            ("redis-memory", self.redis),
        ];
        sizes.map(|(name, bytes)| (name, shown(bytes)))
    }

    /// Maximum memory of all parts together.
    pub(crate) fn total(&self) -> u64 {
        let overlay = self.overlay.saturating_mul(OVERLAY_TIMES);
        [
            self.timeline,
            self.post,
            self.entity,
            self.bucket,
            self.sample,
            self.store_cache,
            self.request,
            self.redis,
            self.connections,
        ]
        .into_iter()
        .fold(overlay.saturating_add(self.fixed), u64::saturating_add)
    }

    pub(crate) fn connections(&self) -> u32 {
        u32::try_from(self.connections / self.connection).unwrap_or(u32::MAX)
    }

    pub(crate) fn set_node(&self, options: &mut NodeOptions) {
        options.timeline_memory = size(self.timeline);
        options.post_memory = size(self.post);
        options.entity_memory = size(self.entity);
        options.bucket_memory = size(self.bucket);
        options.sample_memory = size(self.sample);
        options.store_cache = size(self.store_cache);
        options.overlay_memory = size(self.overlay);
    }

    pub(crate) fn request(&self) -> usize {
        size(self.request)
    }

    pub(crate) fn redis(&self) -> usize {
        size(self.redis)
    }

    /// Logs how the memory is divided, and warns if it exceeds the `available` bytes.
    pub(crate) fn log(&self, available: Option<u64>) {
        let mib = |bytes: u64| bytes / MIB;
        if let Some(available) =
            available.filter(|available| *available < self.total() + self.converter)
        {
            tracing::warn!(
                total = mib(self.total() + self.converter),
                available = mib(available),
                "roost may use more memory than is available to this process, in MiB, and would be killed under load; \
                 lower --memory, or raise the limit"
            );
        }
        tracing::info!(
            total = mib(self.total()),
            timelines = mib(self.timeline),
            posts = mib(self.post),
            entities = mib(self.entity),
            buckets = mib(self.bucket),
            samples = mib(self.sample),
            store_cache = mib(self.store_cache),
            overlay = mib(self.overlay.saturating_mul(OVERLAY_TIMES)),
            requests = mib(self.request),
            redis = mib(self.redis),
            connections = mib(self.connections),
            other = mib(self.fixed),
            "maximum memory, in MiB"
        );
    }
}

fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Number of bytes of a unit when the parts without a setting share the rest of `whole`. The overlay (at place 5)
/// counts [`OVERLAY_TIMES`] times.
fn unit((whole, fixed): (u64, u64), parts: &[(u64, Option<u64>); 10]) -> anyhow::Result<u64> {
    let (mut taken, mut units) = (fixed, 0);
    for (place, (share, given)) in parts.iter().enumerate() {
        let times = if place == 5 { OVERLAY_TIMES } else { 1 };
        match given {
            Some(given) => taken = taken.saturating_add(given.saturating_mul(times)),
            None => units += share * times,
        }
    }
    let unit = whole.checked_sub(taken).map(|left| left / units.max(1));
    let needed = taken.saturating_add(units * UNIT_MIN);
    unit.filter(|unit| units == 0 || *unit >= UNIT_MIN).ok_or_else(|| {
        let (whole, needed) = (whole / MIB, needed.div_ceil(MIB));
        anyhow::anyhow!(
            "--memory {whole}MiB is too little: the sizes you set plus the minimum of the rest need {needed}MiB"
        )
    })
}

/// Formats a size as in a setting.
fn shown(bytes: u64) -> String {
    match bytes % MIB {
        0 => format!("{}MiB", bytes / MIB),
        _ => format!("{:.1}MiB", bytes as f64 / MIB as f64),
    }
}

#[cfg(test)]
mod tests {
    use api::ApiOptions;
    use edge::Access;
    use redis::RedisOptions;

    use super::*;

    fn mib(mib: u64) -> Option<ByteSize> {
        Some(ByteSize::b(mib * MIB))
    }

    #[test]
    fn without_settings_the_parts_have_their_defaults() {
        let memory = Memory::divide(None, &Given::default(), None).unwrap();
        let mut node = NodeOptions::new("x");
        let (api, redis) = (ApiOptions::new(Access::Open), RedisOptions::new(Access::Open));
        let defaults = (
            [node.timeline_memory, node.post_memory, node.bucket_memory, node.sample_memory],
            [node.entity_memory, node.store_cache, node.overlay_memory],
            [api.request_memory, redis.memory],
        );
        memory.set_node(&mut node);
        let divided = (
            [node.timeline_memory, node.post_memory, node.bucket_memory, node.sample_memory],
            [node.entity_memory, node.store_cache, node.overlay_memory],
            [memory.request(), memory.redis()],
        );
        assert_eq!(divided, defaults);
        assert_eq!(memory.connections(), api.connections_max);
        assert!(memory.total() <= DEFAULT && memory.total() > DEFAULT - MIB);
        assert_eq!(Memory::divide(mib(2_840), &Given::default(), None).unwrap(), memory);
    }

    #[test]
    fn the_parts_add_up_to_at_most_the_whole() {
        let timeline = Given { timeline: mib(100), ..Given::default() };
        let several =
            Given { overlay: mib(32), redis: mib(1), max_connections: Some(100), ..timeline };
        let archive = Given { archive: true, ..several };
        let tls = Given { tls: true, ..Given::default() };
        let pictures = Given { pictures: true, ..timeline };
        let cluster = Given { cluster: true, changes: true, ..pictures };
        for given in [Given::default(), timeline, several, archive, tls, pictures, cluster] {
            for whole in [1_004, 1_014, 1_024, 5_000, 1_000_000] {
                let whole = whole + if given.pictures { 450 } else { 0 };
                let memory = Memory::divide(mib(whole), &given, None).unwrap();
                assert!(memory.total() <= whole * MIB, "{whole} {memory:?}");
                assert!(memory.total() > (whole - 1) * MIB, "{whole} {memory:?}");
                assert!(given.timeline.is_none() || memory.timeline == 100 * MIB);
            }
        }
        let large = Memory::divide(None, &Given { timeline: mib(9_000), ..Given::default() }, None);
        assert_eq!(large.unwrap().post, 384 * MIB);
    }

    #[test]
    fn a_small_machine_gets_less_by_default() {
        let available = |mib| Some(mib * MIB);
        for (has, most) in [(24_000, 2_840), (4_000, 2_840), (2_000, 1_500), (1_200, 900)] {
            let memory = Memory::divide(None, &Given::default(), available(has)).unwrap();
            let total = memory.total() / MIB;
            assert!(total <= most && total + 2 > most, "{has}: {total}");
        }
        // The result is never below the minimum for a server.
        for has in [0, 1, 512, 1_024] {
            let memory = Memory::divide(None, &Given::default(), available(has)).unwrap();
            assert_eq!(memory.total().div_ceil(MIB), 864);
        }
        // Explicit settings are kept.
        let large = Given { timeline: mib(9_000), ..Given::default() };
        let memory = Memory::divide(None, &large, available(1_024)).unwrap();
        assert_eq!((memory.timeline, memory.post), (9_000 * MIB, 12 * UNIT_MIN));
        let whole = Memory::divide(mib(2_840), &Given::default(), available(1_024)).unwrap();
        assert_eq!(whole, Memory::divide(None, &Given::default(), None).unwrap());
    }

    #[test]
    fn a_connection_over_tls_counts_with_what_tls_takes() {
        let plain = Memory::divide(None, &Given::default(), None).unwrap();
        let tls = Given { tls: true, ..Given::default() };
        let memory = Memory::divide(None, &tls, None).unwrap();
        assert_eq!((plain.connections(), memory.connections()), (4_096, 1_755));
        assert_eq!(memory.total() - plain.total(), HANDSHAKE_MEMORY as u64);
        let asked = Given { max_connections: Some(4_096), ..tls };
        let memory = Memory::divide(None, &asked, None).unwrap();
        assert_eq!((memory.connections(), memory.connections / MIB), (4_096, 448));
    }

    #[test]
    fn too_little_is_refused_with_what_is_needed() {
        let check = |whole, given: &Given, needed: &str| {
            let error = Memory::divide(mib(whole), given, None).unwrap_err().to_string();
            assert!(error.contains(needed), "{error}");
        };
        check(863, &Given::default(), "864MiB");
        assert!(Memory::divide(mib(864), &Given::default(), None).is_ok());
        check(0, &Given::default(), "864MiB");
        let large = Given { overlay: mib(500), ..Given::default() };
        check(1_000, &large, "2816MiB");
        // An archive adds 132 MiB.
        check(995, &Given { archive: true, ..Given::default() }, "996MiB");
        // The help text of --media-max contains the memory that pictures add.
        let pictures = Given { pictures: true, ..Given::default() };
        check(992, &pictures, "993MiB");
        assert_eq!(PICTURES.div_ceil(MIB), 129);
        check(1_000, &Given { sample: mib(14), ..Given::default() }, "15MiB");
    }
}
