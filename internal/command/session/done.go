package session

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// OutcomeFlags are the values of --done and --unknown, as given. They read the outcome out of the body of a 2xx, for an API whose status
// does not tell it. With them --declined does so, too; alone it only names results.
type OutcomeFlags struct{ done, unknown []string }

// Bind adds --done and --unknown to fs.
func (f *OutcomeFlags) Bind(fs *pflag.FlagSet) {
	fs.StringArrayVar(&f.done, "done", nil, "the only 2xx that is a success, as JSON pointer and text, such as '/status=succeeded'; other ones are held, or refused by --declined; it judges what is begun with it, and no end that the journal has; may be repeated")
	fs.StringArrayVar(&f.unknown, "unknown", nil, "with --done: a 2xx that is held whatever else it says, such as '/status=processing'; may be repeated")
}

// Apply returns a copy of the profile with the meaning of 2xx answers by --done, --unknown and the values of --declined. Without --done it returns the profile itself.
// The copy has a mark in its name, so that records show how they were judged.
func (f *OutcomeFlags) Apply(p *profile.Profile, declined []string) (*profile.Profile, error) {
	if len(f.done) == 0 {
		if len(f.unknown) > 0 {
			return nil, errors.New("--unknown: say with --done which answer is a success; without it every other 2xx is one")
		}
		return p, nil
	}
	own := *p
	own.Name += words.DoneMark
	own.Verdicts, own.Sources = slices.Clone(p.Verdicts), maps.Clone(p.Sources)
	delete(own.Sources, "Verdicts") // the caller has set them
	for _, of := range []struct {
		flag   string
		texts  []string
		proves profile.Proof
	}{{"--done", f.done, profile.ProvesSucceeded}, {"--declined", declined, profile.ProvesRefused}, {"--unknown", f.unknown, profile.ProvesUnknown}} {
		for _, text := range of.texts {
			pointer, equals, found := strings.Cut(text, "=")
			if !found || equals == "" || !words.IsPointer(pointer) || words.CheckPointers([]string{pointer}) != nil {
				return nil, fmt.Errorf("%s %q: want a JSON pointer, = and a text, such as /status=succeeded", of.flag, words.Clip(text))
			}
			own.Verdicts = append(own.Verdicts, profile.Verdict{Pointer: pointer, Equals: []string{equals}, Proves: of.proves})
		}
	}
	if err := own.Check(); err != nil {
		return nil, fmt.Errorf("--done: %w", err)
	}
	return &own, nil
}

// Unkept returns the pointers of --drop-answer: the journal keeps answers without these members.
func (f *ClientFlags) Unkept() []string { return f.dropAnswer }

// AsksDone reports whether --done was given.
func (f *ClientFlags) AsksDone() bool { return len(f.outcome.done) > 0 }

// ExplainHeld adds to the printed line of an operation that is held after a 2xx (a person decides) why its answer is no success by --done and --unknown. Without
// --done it does nothing.
func (f *ClientFlags) ExplainHeld(l *results.Line) {
	if f.AsksDone() {
		f.asked.Explain(l)
	}
}

// JudgeEarlier adds a note to the printed line of an operation that the journal has as a success, if it was begun without --done (the answers that are a success),
// or with other values, and the --done of this run would not call it one. The result itself stays.
func (f *ClientFlags) JudgeEarlier(rec *persist.Record, l *results.Line) {
	if !f.AsksDone() {
		return
	}
	// The same profile name with other facts: it was begun with other values of the flags.
	other := rec.Profile == f.Used.Name && rec.Facts != "" && rec.Facts != f.Used.FactsDigest()
	if strings.Contains(rec.Profile, words.DoneMark) && !other {
		return
	}
	f.asked.Judge(rec, l)
}
