package oncehttp

import "time"

// crew runs flights on goroutines that it keeps a while for the next, since
// their stacks have grown by then to what a flight needs; growing one anew for
// each costs as much as all else that a flight does. There are never more than
// there were flights at once.
type crew struct {
	jobs chan *flight
	over <-chan struct{} // ends the idle ones
}

// crewIdle is how long one of the crew waits for work.
const crewIdle = 10 * time.Second

func (c *crew) run(f *flight) {
	select {
	case c.jobs <- f:
	default: // nobody is idle
		go c.work(f)
	}
}

func (c *crew) fly(f *flight) {
	defer f.c.flying.Done() // also if a function of the Config ends the goroutine
	f.fly(f.do)
}

func (c *crew) work(f *flight) {
	idle := time.NewTimer(crewIdle)
	defer idle.Stop()
	for {
		c.fly(f)
		f = nil // let go of the request
		idle.Reset(crewIdle)
		select {
		case f = <-c.jobs:
		case <-idle.C:
			return
		case <-c.over:
			return
		}
	}
}
