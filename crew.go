package oncehttp

import "time"

// crew runs flights on goroutines that it keeps a while for the next, since
// their stacks have grown by then to what a flight needs; growing one anew for
// each costs as much as all else that a flight does. There are never more than
// there were flights at once.
type crew struct {
	jobs chan func()
	over <-chan struct{} // ends the idle ones
}

// crewIdle is how long one of the crew waits for work.
const crewIdle = 10 * time.Second

func (c *crew) run(job func()) {
	select {
	case c.jobs <- job:
	default: // nobody is idle
		go c.work(job)
	}
}

func (c *crew) work(job func()) {
	idle := time.NewTimer(crewIdle)
	defer idle.Stop()
	for {
		job()
		job = nil // let go of the request
		idle.Reset(crewIdle)
		select {
		case job = <-c.jobs:
		case <-idle.C:
			return
		case <-c.over:
			return
		}
	}
}
