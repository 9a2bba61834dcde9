//! Experiment 6: buckets of keys and values in five designs, driven by the same clients.

mod bucket;
mod central;
mod erlang;
mod experiment;
mod locked;
mod redis;
mod roost;
mod sharded;
mod worker;
mod workload;

#[cfg(test)]
mod tests;

pub(crate) use experiment::EXPERIMENT;

/// Length of a value in bytes.
const VALUE_BYTES: usize = 32;

/// Value. It is stored by copying it.
type Value = [u8; VALUE_BYTES];

/// Design of the store.
trait Design: Sized + Send + Sync + 'static {
    type Client: Client;

    /// Starts an empty store for this many clients on the runtime of the caller.
    fn start(clients: u32) -> impl Future<Output = Self> + Send;

    /// Creates the client with this number. Numbers begin at 0.
    fn connect(&self, client: u32) -> Self::Client;
}

/// Client with at most one request in progress.
trait Client: Send + 'static {
    /// Creates a bucket unless it exists. Afterwards, every client can use it.
    fn create(&mut self, bucket: u32) -> impl Future<Output = ()> + Send;

    /// Value of a key; `None` if the key or bucket does not exist.
    fn read(&mut self, bucket: u32, key: u32) -> impl Future<Output = Option<Value>> + Send;

    /// Sets the value of a key; false if the bucket does not exist.
    fn write(&mut self, bucket: u32, key: u32, value: Value) -> impl Future<Output = bool> + Send;

    /// Sets the values of keys, sorted by bucket, before the measurement, in one request if the design allows it.
    fn write_all(&mut self, keys: Vec<(u32, u32, Value)>) -> impl Future<Output = ()> + Send {
        async move {
            for (bucket, key, value) in keys {
                self.write(bucket, key, value).await;
            }
        }
    }
}
