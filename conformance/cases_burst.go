package conformance

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// The first burstWide rounds release burstWidth duplicates at one instant, later ones
// burstNarrow, so that there can be more rounds.
const (
	burstWidth  = 64
	burstWide   = 3
	burstNarrow = 16
	// burstLanes is the number of rounds at the same time against a server with answers slower
	// than burstSlow: it spends the time waiting.
	burstLanes = 5
	burstSlow  = 40 * time.Millisecond
	// burstLimited is the most rounds kept out by a limit on the rate of requests,
	// or by a short queue of connections, before the case gives up.
	burstLimited = 5
)

// round is one burst: an operation, and the answers to its duplicates.
type round struct {
	n, width int // number of the round, from 1; number of duplicates
	op       *operation
	links    []*link   // closed; for the evidence
	answers  []*answer // parallel to links
}

// wide reports whether this round sends the full number of requests at once (burstWidth), and not the smaller number of the later rounds, for the
// counts in the report.
func (b *round) wide() bool { return b.width == burstWidth }

// keptOut reports whether the round of simultaneous requests shows nothing: no duplicate had an outcome, and a rate limit answered one, or the server
// closed all connections. Such a round does not count, for or against the server.
func (b *round) keptOut() bool {
	return !slices.ContainsFunc(b.answers, (*answer).outcome) &&
		(slices.ContainsFunc(b.answers, func(a *answer) bool { return a.throttled }) ||
			!slices.ContainsFunc(b.answers, func(a *answer) bool { return !a.closed() }))
}

// bursts plays as many rounds as Options.Rounds says, each with many duplicates of one new operation sent at once. It ends early if a round shows
// more than one effect or outcome. Rounds that a rate limit kept out (keptOut) do not count; after burstLimited of them it gives up. If a round is
// slow, the next ones are played beside each other, lanes of them at a time. narrow counts the later rounds, which have fewer duplicates. The effects
// of an operation that was never sent are asked for first, to see whether any can be counted.
func bursts(x *trial) {
	if _, ok := x.effects(x.newOperation().ref); !ok { // effects cannot be counted
		return
	}
	clean, narrow, limited, lanes := 0, 0, 0, 1
	for n := 0; n < x.r.o.Rounds && x.ctx.Err() == nil && limited < burstLimited; {
		rounds := x.rounds(n, min(lanes, x.r.o.Rounds-n))
		n += len(rounds)
		counts := x.countRounds(rounds)
		for i, b := range rounds {
			if b.keptOut() {
				limited++
				x.pause(time.Second)
				continue
			}
			if x.ctx.Err() != nil || !x.judgeRound(b, counts[i]) {
				return
			}
			clean++
			if !b.wide() {
				narrow++
			}
		}
		if took := rounds[0].answers[0]; took.ended.Sub(took.started) > burstSlow {
			lanes = burstLanes
		}
	}
	if clean == 0 {
		x.inconclusive("a limit on the rate of requests, or a short queue of connections, kept every burst out")
		return
	}
	x.want(true, "", "%d rounds without a find (%d of %d, %d of %d at once); no proof that there is none", clean, clean-narrow, burstWidth, narrow, burstNarrow)
}

// rounds plays several rounds of a burst at the same time, with the numbers from+1 to from+lanes, and returns them when all have ended. The first
// rounds are wider: they have more duplicates.
func (x *trial) rounds(from, lanes int) []*round {
	all := make([]*round, lanes)
	var over sync.WaitGroup
	for i := range all {
		b := &round{n: from + i + 1, width: burstNarrow, op: x.newOperation()}
		if from+i < burstWide {
			b.width = burstWidth
		}
		all[i] = b
		over.Go(func() { x.burst(b) })
	}
	over.Wait()
	return all
}

// countRounds returns the effects of each round so far, parallel to rounds; -1 means none yet (an effect may come late), or no counter, so that
// judgeRound does not judge by it. It registers a claim (a first count, compared with another one at the end of the case) for each, for late effects.
func (x *trial) countRounds(rounds []*round) []int {
	counts := make([]int, len(rounds))
	if x.counts() {
		claims := make([]claim, len(rounds))
		for i, b := range rounds {
			claims[i] = claim{ref: b.op.ref, most: 1, what: fmt.Sprintf("the reference of round %d", b.n)}
		}
		counts = x.r.recount(x.ctx, claims)
		for i := range claims {
			claims[i].seen = counts[i]
		}
		x.claims = append(x.claims, claims...)
	}
	for i, n := range counts {
		if n == 0 {
			counts[i] = -1
		}
	}
	return counts
}

// judgeRound judges one round of simultaneous duplicates, of which n effects were counted; a negative n means no count. It returns false if the case
// ends here: it found a violation, or could decide nothing. judgeHistory compares answers and count with the model of one key. The requests of the
// first round are kept as evidence also if all is right.
func (x *trial) judgeRound(b *round, n int) bool {
	given := slices.ContainsFunc(b.answers, (*answer).outcome)
	if !given {
		x.show(b)
		x.inconclusive("round %d: none of %d duplicates was given an outcome, but %s", b.n, b.width, b.answers[0])
		return false
	}
	r := judgeHistory(events(b.answers), n)
	switch {
	case !r.known:
		x.inconclusive("round %d: %s", b.n, r.why)
		return false
	case !r.legal:
		x.show(b)
		if n >= 0 {
			x.noteEffects("its reference", n)
		}
		x.proved = true
		x.wantOrHarm(r.harm, false, "one effect; each answer its outcome, or in-progress while it may be running", "round %d of %d, %d at once: %s", b.n, x.r.o.Rounds, b.width, r.why)
		return false
	case b.n == 1:
		x.show(b)
	}
	return true
}

// show keeps the exchanges of a round of simultaneous requests as evidence for the report.
func (x *trial) show(b *round) {
	for i, l := range b.links {
		x.keep(l, b.answers[i])
	}
}

// burst sends the round's operation at one instant: all connections have written all but their last byte before any of them writes that. It waits for
// all answers. Each answer is stored with its link, as evidence.
func (x *trial) burst(b *round) {
	b.links, b.answers = make([]*link, b.width), make([]*answer, b.width)
	start := make(chan struct{})
	var ready, over sync.WaitGroup
	ready.Add(b.width)
	for i := range b.width {
		over.Go(func() {
			l := x.dial("")
			defer l.close()
			l.silent = true // show keeps the exchanges of a round as evidence, if they are needed
			l.load(b.op, withLength)
			l.note = "of a burst"
			l.write(1) // all but the last byte
			ready.Done()
			<-start
			l.write(0) // the last byte
			b.links[i], b.answers[i] = l, l.receive()
			l.resetOnClose(b.answers[i])
		})
	}
	ready.Wait()
	close(start)
	over.Wait()
}
