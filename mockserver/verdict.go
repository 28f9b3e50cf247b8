package mockserver

import (
	"fmt"
	"strconv"

	"github.com/oncehttp/oncehttp/internal/report"
)

// findingsMax and exchangesMax bound the evidence of one rule.
const (
	findingsMax  = 10
	exchangesMax = 30
)

// Finished is closed when the referee has seen all operations that it expects
// and nothing more has come, or by POST /_finish. Without a referee it never is.
func (s *Server) Finished() <-chan struct{} { return s.watch.finished }

// Report judges what the client has done so far, one case per rule: pass, fail
// (a should: warn), or skip where no occasion for the rule arose. Nil without
// Config.Referee. It may be called at any time, and again.
func (s *Server) Report() *report.Report {
	if s.cfg.Referee == nil {
		return nil
	}
	s.watch.mu.Lock()
	begun := s.watch.trial.begun
	c := &court{cfg: &s.cfg, referee: s.watch.trial.referee, tracks: s.watch.trial.snapshot()}
	s.watch.mu.Unlock()
	c.pairs = pairs(c.tracks)
	c.effects = s.ledger.byReference()
	r := report.New(report.KindReferee)
	r.Suite = "oncehttp mock"
	r.Target = "client"
	r.Profile = s.cfg.Profile.Name
	r.Seed = s.cfg.Seed
	r.Started = begun
	r.Config = map[string]string{
		"script":            c.referee.Name,
		"operations":        strconv.Itoa(len(c.tracks)),
		"expected":          strconv.Itoa(c.referee.Expect),
		"operation pointer": s.cfg.OperationPointer,
	}
	for i := range c.tracks {
		r.Requests += len(c.tracks[i].sends)
		for _, v := range c.tracks[i].sends {
			r.MS = max(r.MS, report.Millis(v.ended.Sub(begun)))
		}
	}
	judge := judges()
	for _, rule := range Rules() {
		r.Cases = append(r.Cases, c.verdict(rule, judge[rule.ID](c)))
	}
	r.Summary = report.Summarize(r.Cases)
	return r
}

// verdict is what the report says of one rule.
func (c *court) verdict(rule Rule, f finding) report.Case {
	k := report.Case{
		ID: rule.ID, Level: report.Level(rule.Level), Rule: rule.Text, Impact: rule.Impact,
		Spec: []report.Ref{{Name: rule.Source, URL: rule.URL}}, Expected: rule.Text,
		Verdict: report.Pass, Witness: report.Counted, Exchanges: []report.Exchange{},
	}
	switch {
	case len(f.breaches) > 0:
		k.Verdict = report.Fail
		if k.Level == report.Should {
			k.Verdict = report.Warn
		}
		k.Actual = fmt.Sprintf("%d of %d operations broke it; operation %q: %s", len(f.breaches), len(c.tracks), f.breaches[0].at.operation, f.breaches[0].detail)
		k.Exchanges = c.exchanges(f.breaches[0].at)
	case f.skip != "":
		k.Verdict = report.Skip
		k.Reason = f.skip
	}
	for _, b := range f.breaches[:min(len(f.breaches), findingsMax)] {
		text := fmt.Sprintf("operation %q: %s", b.at.operation, b.detail)
		if b.at.scenario != "" {
			text += " (" + b.at.scenario + ")"
		}
		k.Findings = append(k.Findings, report.Finding{Verdict: k.Verdict, Text: text})
	}
	return k
}

// exchanges are the sends of one operation.
func (c *court) exchanges(at *track) []report.Exchange {
	list := []report.Exchange{}
	for i, v := range at.sends[:min(len(at.sends), exchangesMax)] {
		e := report.Exchange{
			At: report.Millis(v.begun.Sub(at.sends[0].begun)), Took: report.Millis(v.ended.Sub(v.begun)),
			Lane: "send " + strconv.Itoa(i+1), Method: v.method, URL: v.path, Key: v.key, Status: v.status,
		}
		switch {
		case v.status == 0:
			e.Error = "no answer was given"
		case !v.whole:
			e.Error = "the answer did not get through"
		case v.replay:
			e.Note = "a replay"
		}
		if v.wait != "" {
			e.Note = "Retry-After: " + v.wait
		}
		list = append(list, e)
	}
	return list
}
