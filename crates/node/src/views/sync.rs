//! Atomics, fences and locks of the views that threads share. The feature `loom` replaces them with those of the model
//! checker loom, so that the tests in `views/races.rs` try every order of their operations.

#[cfg(not(feature = "loom"))]
pub(crate) use parking_lot::{Mutex, MutexGuard, RwLock};
#[cfg(not(feature = "loom"))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, fence};

#[cfg(feature = "loom")]
pub(crate) use checked::{Mutex, MutexGuard, RwLock};
#[cfg(feature = "loom")]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, fence};

#[cfg(feature = "loom")]
mod checked {
    use std::ops::{Deref, DerefMut};
    use std::sync::PoisonError;

    /// Mutex of loom with the interface of parking_lot.
    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    /// Read-write lock of loom with the interface of parking_lot.
    #[derive(Debug)]
    pub(crate) struct RwLock<T>(loom::sync::RwLock<T>);

    impl<T> RwLock<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(loom::sync::RwLock::new(value))
        }

        pub(crate) fn read(&self) -> loom::sync::RwLockReadGuard<'_, T> {
            self.0.read().unwrap_or_else(PoisonError::into_inner)
        }

        pub(crate) fn write(&self) -> loom::sync::RwLockWriteGuard<'_, T> {
            self.0.write().unwrap_or_else(PoisonError::into_inner)
        }
    }

    pub(crate) struct MutexGuard<'a, T>(loom::sync::MutexGuard<'a, T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            MutexGuard(self.0.lock().unwrap_or_else(PoisonError::into_inner))
        }
    }

    impl<T> MutexGuard<'_, T> {
        pub(crate) fn unlock_fair(this: Self) {
            drop(this);
        }
    }

    impl<T> Deref for MutexGuard<'_, T> {
        type Target = T;

        fn deref(&self) -> &T {
            &self.0
        }
    }

    impl<T> DerefMut for MutexGuard<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            &mut self.0
        }
    }
}
