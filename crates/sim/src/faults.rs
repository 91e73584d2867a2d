//! What may go wrong in a run: one switch per fault model of the test program, as chances per mille.

/// Switches; 0 is off.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// FM-1: our process dies, per step.
    pub crash: u64,
    /// FM-2: a watch stands still for a while, per step.
    pub lag: u64,
    /// FM-3: the first list of a new process comes from an older snapshot.
    pub old_lists: u64,
    /// FM-4: a burst of events of one object arrives as its last one.
    pub coalesce: u64,
    /// FM-5: a watch ends and lists anew, at once or after the list was refused for a while, per step.
    pub cut: u64,
    /// FM-5: a watch says nothing for five minutes, per step.
    pub hang: u64,
    /// FM-6: a fenced write is refused although nothing changed.
    pub conflict: u64,
    /// FM-7: a request fails before it is taken.
    pub error: u64,
    /// FM-8: a write is taken, and the answer is lost.
    pub lost_answer: u64,
    /// FM-11: a standby leads while the leader still does; with a real election a process stands still. Per step.
    pub two_leaders: u64,
    /// FM-13: one actor is starved.
    pub slow: bool,
    /// FM-14: pods restart, flap and fail, per step.
    pub mishap: u64,
    /// FM-15: somebody deletes something, per step.
    pub monkey: u64,
    /// FM-19: the user edits the set, per step.
    pub edit: u64,
    /// FM-9: the API server restarts, per step.
    pub server_restart: u64,
    /// FM-10, FM-17: for a while no pod is admitted, per step.
    pub refuse_pods: u64,
    /// FM-12: our clock steps, per step.
    pub clock: u64,
    /// FM-13: one actor stands still for a while, per step.
    pub pause: u64,
    /// FM-18: a request takes seconds.
    pub latency: u64,
}

impl Faults {
    /// Everything on, at the rates of the test program.
    pub fn rough() -> Self {
        Self {
            crash: 3,
            lag: 10,
            old_lists: 300,
            coalesce: 300,
            cut: 5,
            hang: 1,
            conflict: 20,
            error: 20,
            lost_answer: 15,
            two_leaders: 2,
            slow: true,
            mishap: 12,
            monkey: 12,
            edit: 10,
            server_restart: 2,
            refuse_pods: 3,
            clock: 3,
            pause: 3,
            latency: 20,
        }
    }

    /// Nobody touches anything, but our view and our writes are as bad as can be.
    pub fn view() -> Self {
        Self {
            mishap: 0,
            monkey: 0,
            edit: 0,
            ..Self::rough()
        }
    }

    /// The rates of [`Faults::rough`], each fault on or off by chance.
    pub fn some(random: &mut crate::random::Random) -> Self {
        let all = Self::rough();
        let mut keep = |rate: u64| if random.chance(500) { rate } else { 0 };
        Self {
            crash: keep(all.crash),
            lag: keep(all.lag),
            old_lists: keep(all.old_lists),
            coalesce: keep(all.coalesce),
            cut: keep(all.cut),
            hang: keep(all.hang),
            conflict: keep(all.conflict),
            error: keep(all.error),
            lost_answer: keep(all.lost_answer),
            two_leaders: keep(all.two_leaders),
            slow: keep(1) == 1,
            mishap: keep(all.mishap),
            monkey: keep(all.monkey),
            edit: keep(all.edit),
            server_restart: keep(all.server_restart),
            refuse_pods: keep(all.refuse_pods),
            clock: keep(all.clock),
            pause: keep(all.pause),
            latency: keep(all.latency),
        }
    }
}
