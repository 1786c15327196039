//! The profiler's own threads: work that takes long or blocks runs there, never on a thread of the service.
//!
//! They are started once, before the first session, so that not even their start shows up in a capture. They are untracked as
//! long as they live.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use super::Error;
use crate::capture::untracked;
use crate::os::process::check_thread_start;

type Job = Box<dyn FnOnce() + Send>;

/// A thread that does one job after another. It ends when the last clone of its `Worker` is dropped.
#[derive(Debug, Clone)]
pub(crate) struct Worker {
    jobs: mpsc::Sender<Job>,
}

const DIED: Error = Error::Internal("a job panicked; see the panic's message");

impl Worker {
    pub(crate) fn spawn(name: &str) -> io::Result<Worker> {
        Worker::spawn_with(name, || None)
    }

    /// Starts a thread that calls `look` before it waits for a job, and again after the time that `look` returns if no job
    /// comes before.
    pub(crate) fn spawn_with(
        name: &str,
        mut look: impl FnMut() -> Option<Duration> + Send + 'static,
    ) -> io::Result<Worker> {
        check_thread_start()?;
        let (jobs, queue) = mpsc::channel::<Job>();
        thread::Builder::new().name(name.into()).spawn(move || {
            untracked::for_good();
            loop {
                let job = match look() {
                    Some(time) => queue.recv_timeout(time),
                    None => queue.recv().map_err(RecvTimeoutError::from),
                };
                match job {
                    // A job that panics drops the sender of its answer, so the receiver gets an error.
                    Ok(job) => drop(catch_unwind(AssertUnwindSafe(job))),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        })?;
        Ok(Worker { jobs })
    }

    /// Puts a job into the queue.
    pub(crate) fn submit(&self, job: impl FnOnce() + Send + 'static) {
        let _untracked = untracked::enter();
        // The thread lives as long as `self`. If it did not, the job would be dropped with the sender of its answer.
        let _ = self.jobs.send(Box::new(job));
    }

    /// Does a job and waits for its answer, blocking. Must not be called from the worker's own jobs.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        let _untracked = untracked::enter();
        self.begin(job).recv().map_err(|_| DIED)
    }

    /// Does what [`run`](Self::run) does, but waits only until `deadline`: `None` then, and the job is done later.
    pub(crate) fn run_until<T: Send + 'static>(
        &self,
        deadline: Instant,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Option<Result<T, Error>> {
        let _untracked = untracked::enter();
        let left = deadline.saturating_duration_since(Instant::now());
        match self.begin(job).recv_timeout(left) {
            Ok(done) => Some(Ok(done)),
            Err(RecvTimeoutError::Disconnected) => Some(Err(DIED)),
            Err(RecvTimeoutError::Timeout) => None,
        }
    }

    fn begin<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> mpsc::Receiver<T> {
        let (answer, answered) = mpsc::channel();
        self.submit(move || {
            // If it fails, nobody waits for the answer any more.
            let _ = answer.send(job());
        });
        answered
    }

    /// Does a job and waits for its answer without blocking.
    #[cfg(feature = "http")]
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        self.ask(true, job).await
    }

    /// Does what [`call`](Self::call) does, for a job that changes nothing: it is left out if nobody waits for its answer.
    #[cfg(feature = "http")]
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        self.ask(false, job).await
    }

    #[cfg(feature = "http")]
    async fn ask<T: Send + 'static>(
        &self,
        in_any_case: bool,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        let (answer, answered) = tokio::sync::oneshot::channel();
        self.submit(move || {
            if in_any_case || !answer.is_closed() {
                let _ = answer.send(job());
            }
        });
        answered.await.map_err(|_| DIED)
    }
}

#[cfg(test)]
mod tests {
    use super::{Error, Worker};

    #[test]
    fn jobs_are_done_in_the_order_they_were_put_in() {
        let worker = Worker::spawn("test").unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        for number in 0..100 {
            let tell = tell.clone();
            worker.submit(move || tell.send(number).unwrap());
        }
        assert_eq!(worker.run(|| 7).unwrap(), 7);
        assert!(told.try_iter().eq(0..100));
    }

    #[test]
    fn a_panic_is_an_error_and_the_next_job_is_done() {
        let worker = Worker::spawn("test").unwrap();
        let panicked = worker.run(|| panic!("on purpose"));
        assert!(matches!(panicked, Err::<(), _>(Error::Internal(_))));
        assert_eq!(worker.run(|| 1).unwrap(), 1);
    }
}
