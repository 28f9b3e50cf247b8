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

// search is one search with Options.Explore: its drawer, and its findings. One goroutine uses
// it; only the plays of a batch run beside each other.
type search struct {
	*runner
	drawer    drawer
	tried     map[string]int // judged sequences, by relation
	untaken   map[string]int // sequences with requests that the target refuses under any key, by relation
	results   []Result       // of findings, odd ones included
	free      freedoms       // the server's choices
	odd       map[string]int // failures that report1 has had, by id of the finding
	histories int            // sequences sent whole
	begun     time.Time
}

// explore searches for faults by random sequences of requests under one key. It draws sequences, plays them, shortens and confirms the failures, and
// stores a result for each relation in chosen (a kind of difference between requests). Relations that the target cannot be tested with (unfit) are
// not drawn; delays says that operations can be slow. batch plays some sequences and returns the number of the next; conclude stores the results. A
// bound, or the end of ctx, ends it early.
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

// inTime reports whether Options.For has time left; true without it.
func (s *search) inTime() bool { return s.o.For == 0 || time.Since(s.begun) < s.o.For }

// goesOn reports whether the search may send and find more. It ends early if a plain repeat fails (found has no relation, or "repeat" alone): every
// sequence would fail. It ends, too, at the bounds on findings, on failures that came only sometimes (their result is inconclusive), and on requests
// and effects.
func (s *search) goesOn(ctx context.Context) bool {
	plain := slices.ContainsFunc(s.drawer.found, func(ids []string) bool { return len(ids) == 0 || len(ids) == 1 && ids[0] == "repeat" })
	found := 0
	for _, r := range s.results {
		found += count(r.Verdict != VerdictInconclusive)
	}
	return ctx.Err() == nil && !plain && found < s.o.MaxFindings && len(s.results)-found < oddMax && s.effectsLeft()
}

// effectsLeft reports whether three quarters of Options.MaxEffects and MaxRequests are not yet used; the rest is kept for the confirmation of
// findings. outOfEffects is set when an operation was not sent for lack of effects. MaxEffects of 0 or less is no bound.
func (s *search) effectsLeft() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.outOfEffects && (s.o.MaxEffects <= 0 || len(s.operations) <= s.o.MaxEffects*3/4) && s.spent.Load() <= int64(s.o.MaxRequests)*3/4
}

// attempt is one play of a sequence.
type attempt struct {
	*sequence
	x   *trial
	p   *played // nil before the play
	did bool    // it was sent whole and in time; otherwise it shows nothing
}

// failed reports whether the answers to the sequence contradict the model of a correct server: the attempt was played to its end, and a check failed
// or warned.
func (a *attempt) failed() bool {
	return a.did && (a.x.worst() == VerdictFail || a.x.worst() == VerdictWarn)
}

// judgement returns the judgement of a sequence of requests that was sent whole: its checks compare the answers with what a server may decide.
func (a *attempt) judgement() judgement { return judgement{trial: a.x, play: a.p} }

// batch draws and plays sequences from number on, Options.Parallel at most, beside each other, and pursues failures (it shortens and confirms them),
// but none that holds the relations of an earlier finding. draw returns nil if it finds no new sequence. It returns the number of the next sequence.
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

// begin returns an attempt to send a drawn sequence, not yet sent. salt must differ from that of each other attempt, so that its keys are new.
func (s *search) begin(drawn *sequence, salt string, c *Case) *attempt {
	return &attempt{sequence: drawn, x: s.newTrial(c, salt, nil)}
}

// playAll plays several attempts beside each other, and judges each. An attempt is one sequence of requests, sent to the target. It returns after the
// time in which effects may still come.
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

// playOne plays and judges one attempt at a sequence, within a time limit of its own. a.did is true afterwards if it was played to its end; else its
// answers show nothing. judgeFreedoms compares choices of the server, where several answers are right, with those in earlier sequences (s.free).
func (s *search) playOne(ctx context.Context, a *attempt) {
	// three waits for a key that does not resolve, and one answer for each act and some more
	limit := 3*s.o.Settle + time.Duration(len(a.acts)+exploreLimit)*s.o.AnswerTimeout
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errCaseTime)
	defer cancel()
	a.x.start(ctx)
	defer a.x.end()
	if a.p, a.did = a.x.playOut(a.sequence); a.did {
		a.judgement().judgePlayed()
		a.judgement().judgeFreedoms(s.free)
		a.did = ctx.Err() == nil && !a.x.over()
	}
}

// count adds an attempt to the counts of its relations (kinds of differences between requests): to untaken if the target takes no such request, else
// to tried. It also notes what the server chose where several answers are right. A failure counts for none: another relation may be its cause. An
// attempt that was cut short counts nowhere. The verdict is a skip where the target refuses such a request under any key.
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
	for _, o := range a.judgement().observe() {
		s.free.note(o.change, o.freedom)
	}
}

// pursue plays a failed sequence again by itself, finds the shortest one that fails, confirms it, and reports it. A failure that does not come again
// is reported as inconclusive. One that did not come at the first try fails only sometimes, and gets more tries in each step. finding makes the case
// for the report, of the relations (kinds of differences between requests) in the shortest sequence.
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

// again sends a drawn sequence of requests until the answers break a rule, tries times at most. It returns the attempt that failed, or nil, and the
// number of attempts. So it tells a fault of the server from chance. The salt, different in each try, makes the keys new.
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

// report1 adds the finding of a sequence that broke a rule in failed of tries attempts. With fewer failures than confirmations it is inconclusive
// ("odd"). From then on the search draws no such sequence; after an odd one only from the third time. A firm finding takes the place of an
// inconclusive one with the same id, and the first of equals stays. tell puts requests and answers into words.
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

// coverAlso adds the combinations of relations with the same cause to those found, so that no more sequences with them are drawn. A relation is a
// kind of difference between requests; one may cover others, since a fault with it explains a fault with them. So each combination is added again
// with a covered relation in the place of the one that covers it.
func (s *search) coverAlso(ids []string) {
	for i, id := range ids {
		for _, covered := range s.related[id].covers {
			also := slices.Clone(ids)
			also[i] = covered
			s.drawer.found = append(s.drawer.found, also)
		}
	}
}

// conclude stores the result of each chosen relation, a kind of difference between requests: the finding, a pass, or the reason why no sequence tried
// it (a skip). Findings of several relations go to r.extra.
func (s *search) conclude(chosen []Case) {
	s.leaveOutCovered()
	for _, result := range s.results {
		s.progress.finish(result)
	}
	for _, c := range chosen {
		id := strings.TrimPrefix(c.ID, exploredIDs)
		if _, found := s.progress.result(c.ID); found {
			continue
		}
		result := s.skipped(&c, s.notTried(&c, id))
		if result.Reason == "" { // it was tried, and nothing was found
			text := "no contradiction in " + plural(s.tried[id], "sequence")
			if f, settled := s.free.settled(id); settled {
				text += ": the request is " + f.String()
			}
			result.Verdict, result.Findings = VerdictPass, []Finding{{VerdictPass, text}}
			result.Witness = s.learnt.witness
		}
		s.progress.finish(result)
	}
	s.extra = s.results
}

// leaveOutCovered drops findings that another failure explains: one with fewer relations (kinds of differences between requests), or with relations
// that cover theirs. A result that is no failure explains nothing.
func (s *search) leaveOutCovered() {
	s.results = slices.DeleteFunc(slices.Clone(s.results), func(r Result) bool {
		return slices.ContainsFunc(s.results, func(more Result) bool {
			return more.ID != r.ID && more.Verdict == VerdictFail && s.saysMore(idsOf(more), idsOf(r))
		})
	})
}

// saysMore reports whether the relations others (kinds of differences between requests) explain all of ids: each is among them,
// or covers one of them.
func (s *search) saysMore(ids, others []string) bool {
	return !slices.ContainsFunc(ids, func(id string) bool {
		return !slices.Contains(others, id) && !slices.ContainsFunc(s.related[id].covers, func(covered string) bool { return slices.Contains(others, covered) })
	})
}

// idsOf returns the relations (kinds of differences between requests) of a finding, whose id is made of them.
func idsOf(r Result) []string {
	return strings.Split(strings.TrimPrefix(r.ID, exploredIDs), togetherWith)
}

// notTried returns the reason for which no sequence tried a relation, a kind of difference between requests; "" if one did.
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
