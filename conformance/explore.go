package conformance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// The bounds of the search.
const (
	historiesDefault = 300
	shrinksMax       = 120   // sequences that are tried to find a shorter one
	pursuitMax       = 3_000 // requests of them
	confirmations    = 3
	confirmationsOdd = 40 // plays at most, until one that fails sometimes has failed so often
	sometimesTries   = 10 // plays of a sequence that fails sometimes
	findingsMax      = 12
	oddMax           = 12 // contradictions that did not come again
	oddTimes         = 3  // how often one is odd before the search goes on without it
	// exploreLimit bounds the answers of one sequence, in answers that do not come.
	exploreLimit = 4
)

// search is one search: what it may draw, and what it has found.
type search struct {
	*runner
	drawer    drawer
	tried     map[string]int // sequences that were judged, by relation
	untaken   map[string]int // sequences that the target did not take, by relation
	results   []Result       // of findings
	free      freedoms       // what the server does where it is free
	odd       map[string]int // how often a contradiction did not come again, by id
	histories int
	begun     time.Time
}

// explore draws sequences, plays them, and shortens and confirms what fails.
func (r *runner) explore(ctx context.Context, chosen []Case) {
	s := &search{runner: r, begun: time.Now(), free: freedoms{}, odd: map[string]int{}, tried: map[string]int{}, untaken: map[string]int{}}
	s.drawer = drawer{seed: r.seed, known: r.related, order: r.order}
	for _, c := range chosen {
		if r.unfit(&c) == "" {
			s.drawer.ids = append(s.drawer.ids, strings.TrimPrefix(c.ID, exploredIDs))
		}
	}
	s.drawer.delays = slices.Contains(s.drawer.ids, "overlap")
	for number := 0; number < r.o.Histories && len(s.drawer.ids) > 0 && s.inTime() && s.goesOn(ctx); {
		number = s.batch(ctx, number)
	}
	s.conclude(chosen)
}

// inTime reports whether Options.For is not over.
func (s *search) inTime() bool { return s.o.For == 0 || time.Since(s.begun) < s.o.For }

// goesOn reports whether more may be sent and found.
func (s *search) goesOn(ctx context.Context) bool {
	plain := slices.ContainsFunc(s.drawer.found, func(ids []string) bool { return len(ids) == 0 || len(ids) == 1 && ids[0] == "repeat" })
	found := 0
	for _, r := range s.results {
		found += count(r.Verdict != VerdictInconclusive)
	}
	return ctx.Err() == nil && !plain && found < s.o.MaxFindings && len(s.results)-found < oddMax && s.effectsLeft()
}

// effectsLeft reports whether enough of Options.MaxEffects and MaxRequests is left: a quarter of each is kept for findings.
func (s *search) effectsLeft() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.outOfEffects && (s.o.MaxEffects <= 0 || len(s.operations) <= s.o.MaxEffects*3/4) && s.spent.Load() <= int64(s.o.MaxRequests)*3/4
}

// attempt is one play of a sequence.
type attempt struct {
	*sequence
	x   *trial
	p   *played
	did bool // it was sent whole
}

// failed reports whether the sequence contradicts the model.
func (a *attempt) failed() bool {
	return a.did && (a.x.worst() == VerdictFail || a.x.worst() == VerdictWarn)
}

// batch plays some sequences beside each other, and returns the number of the next.
func (s *search) batch(ctx context.Context, number int) int {
	var all []*attempt
	for ; number < s.o.Histories && len(all) < s.o.Parallel; number++ {
		if drawn := s.drawer.draw(number); drawn != nil {
			all = append(all, s.begin(drawn, fmt.Sprint("history ", number), &Case{ID: exploredIDs + "search", Level: LevelSafety}))
		}
	}
	s.playAll(ctx, all)
	for _, a := range all {
		s.count(a)
		if a.failed() && s.goesOn(ctx) && !s.drawer.holdsFound(a.sequence) {
			s.pursue(ctx, a)
		}
	}
	return number
}

// begin makes a trial of a sequence.
func (s *search) begin(drawn *sequence, salt string, c *Case) *attempt {
	return &attempt{sequence: drawn, x: s.newTrial(c, salt, nil)}
}

// playAll plays sequences beside each other and judges them, once late effects have had their time.
func (s *search) playAll(ctx context.Context, all []*attempt) {
	var wait sync.WaitGroup
	tries := make([]*trial, len(all))
	for i, a := range all {
		tries[i] = a.x
		wait.Go(func() { s.playOne(ctx, a) })
	}
	wait.Wait()
	s.settleAll(ctx, tries)
}

// playOne plays one sequence within its bound, and judges it.
func (s *search) playOne(ctx context.Context, a *attempt) {
	limit := 3*s.o.Settle + time.Duration(len(a.acts)+exploreLimit)*s.o.AnswerTimeout
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errCaseTime)
	defer cancel()
	a.x.start(ctx)
	defer a.x.end()
	if a.p, a.did = a.x.playOut(a.sequence); a.did {
		a.x.judgePlayed(a.p)
		a.x.judgeFreedoms(a.p, s.free)
		a.did = ctx.Err() == nil && !a.x.over()
	}
}

// count notes which relations a sequence has tried, and what it shows of the server's freedoms.
func (s *search) count(a *attempt) {
	if !a.did {
		return
	}
	s.histories++
	counts := s.tried
	switch {
	case a.x.worst() == VerdictSkip:
		counts = s.untaken
	case a.failed():
		return // another relation may be the one that it contradicts
	}
	for _, id := range a.relations(s.order) {
		counts[id]++
	}
	for _, o := range a.p.observe(a.x) {
		s.free.note(o.change, o.freedom)
	}
}

// pursue plays a sequence that failed again by itself, finds the shortest that fails, and
// reports it. What does not come again is reported as undecided.
func (s *search) pursue(ctx context.Context, a *attempt) {
	short, tries := s.again(ctx, a.sequence, sometimesTries)
	if short == nil {
		s.report1(a, 0, tries)
		return
	}
	if tries > 1 { // it fails sometimes
		tries = sometimesTries
	}
	shortest := s.shorten(ctx, short, tries)
	c := s.finding(shortest.relations(s.order))
	var failed []*attempt
	played := 0
	for ; len(failed) < confirmations && played < max(confirmations, confirmationsOdd*count(tries > 1)); played++ {
		again := s.begin(shortest.sequence.clone(), fmt.Sprint("confirmed ", s.histories, " ", s.spent.Load(), " ", played), &c)
		s.playAll(ctx, []*attempt{again})
		if again.failed() {
			failed = append(failed, again)
		}
	}
	if len(failed) == 0 {
		s.report1(short, 0, played)
		return
	}
	s.report1(failed[0], len(failed), played)
}

// again plays a sequence up to so many times, until it fails, and says how often it did; nil: it does not.
func (s *search) again(ctx context.Context, drawn *sequence, tries int) (*attempt, int) {
	for n := range tries {
		a := s.begin(drawn.clone(), fmt.Sprint("again ", s.histories, " ", s.spent.Load(), " ", n), &Case{ID: exploredIDs + "search", Level: LevelSafety})
		s.playAll(ctx, []*attempt{a})
		if a.failed() {
			return a, n + 1
		}
	}
	return nil, tries
}

// report1 adds the result of a finding.
func (s *search) report1(a *attempt, failed, tries int) {
	ids := a.relations(s.order)
	c := s.finding(ids)
	if s.odd[c.ID]++; failed >= confirmations || s.odd[c.ID] >= oddTimes {
		s.drawer.found = append(s.drawer.found, ids)
		s.coverAlso(ids)
	}
	a.x.c = &c
	result := a.x.result()
	result.Actual += ": " + a.p.tell(s.runner)
	result.Odds = fmt.Sprintf("failed %d/%d", failed, tries)
	if failed < confirmations {
		result.Verdict, result.Level = VerdictInconclusive, LevelSafety
		result.Reason = "odd: " + sometimes(failed, tries, a.x.took) + ": " + result.Actual
		result.Findings = append(result.Findings, Finding{Verdict: VerdictInconclusive, Text: result.Reason})
	}
	s.results = slices.DeleteFunc(s.results, func(r Result) bool { return r.ID == result.ID && r.Verdict == VerdictInconclusive })
	if !slices.ContainsFunc(s.results, func(r Result) bool { return r.ID == result.ID }) {
		s.results = append(s.results, result)
	}
}

// coverAlso leaves out what differs wherever a relation of a finding does.
func (s *search) coverAlso(ids []string) {
	for i, id := range ids {
		for _, covered := range s.related[id].covers {
			also := slices.Clone(ids)
			also[i] = covered
			s.drawer.found = append(s.drawer.found, also)
		}
	}
}

// conclude gives each relation its result: the finding, or that none contradicts it, or why it was not tried.
func (s *search) conclude(chosen []Case) {
	s.leaveOutCovered()
	for _, result := range s.results {
		s.finish(result)
	}
	for _, c := range chosen {
		id := strings.TrimPrefix(c.ID, exploredIDs)
		if _, found := s.found[c.ID]; found {
			continue
		}
		result := s.skipped(&c, s.notTried(&c, id))
		if result.Reason == "" {
			text := "no contradiction in " + plural(s.tried[id], "sequence")
			if f, settled := s.free.settled(id); settled {
				text += ": the request is " + f.String()
			}
			result.Verdict, result.Findings = VerdictPass, []Finding{{VerdictPass, text}}
			result.Witness = s.learnt.witness
		}
		s.finish(result)
	}
	s.extra = s.results
}

// leaveOutCovered drops findings that say no more than another one, which needs fewer relations or covers theirs.
func (s *search) leaveOutCovered() {
	s.results = slices.DeleteFunc(slices.Clone(s.results), func(r Result) bool {
		return slices.ContainsFunc(s.results, func(more Result) bool {
			return more.ID != r.ID && more.Verdict == VerdictFail && s.saysMore(idsOf(more), idsOf(r))
		})
	})
}

// saysMore reports whether each of the relations, or one that it covers, is among the others.
func (s *search) saysMore(ids, others []string) bool {
	return !slices.ContainsFunc(ids, func(id string) bool {
		return !slices.Contains(others, id) && !slices.ContainsFunc(s.related[id].covers, func(covered string) bool { return slices.Contains(others, covered) })
	})
}

// idsOf lists the relations of a finding.
func idsOf(r Result) []string {
	return strings.Split(strings.TrimPrefix(r.ID, exploredIDs), togetherWith)
}

// notTried says why a relation was not tried; "": it was.
func (s *search) notTried(c *Case, id string) string {
	why := s.unfit(c)
	switch {
	case why != "":
		return why
	case s.tried[id] > 0:
		return ""
	case s.untaken[id] > 0:
		return "the target does not take such a request"
	case len(s.results) > 0:
		return "not applicable: what was found before it leaves nothing to be said (" + s.results[0].ID + ")"
	}
	return "no sequence with it was drawn (--histories)"
}
