package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/run"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// KeepDeclines writes the values of --declined (answers that count as a refusal) to the journal, and takes over those of earlier runs. So every later reader of the
// journal judges answers as this run does. warn is called with a text about the earlier values, and if values cannot be kept; that is no error of the run.
func (f *ClientFlags) KeepDeclines(ctx context.Context, ses *Session, warn func(string)) error {
	if err := f.TakeDeclines(ctx, ses, warn); err != nil || len(f.declinedTexts) == 0 {
		return err
	}
	err := f.declinedSince.keep(ctx, ses) // the times first: a value without one counts from the start
	if err == nil {
		err = ChangeFact(ctx, ses, persist.FactDeclined, func(standing string) string {
			next := strings.Join(withTexts(declinedTexts(standing), f.declinedTexts), "\n")
			if next != standing && (len(next) > persist.FactMax || strings.Contains(strings.Join(f.declinedTexts, ""), "\n")) {
				warn(fmt.Sprintf("the journal keeps at most %d bytes of --declined: say it again to journal stats, list, report and show", persist.FactMax))
				return ""
			}
			return next
		})
	}
	if errors.Is(err, persist.ErrDenied) {
		warn("this role may not keep --declined in the journal: say it again to journal stats, list, report and show")
		return nil
	}
	return err
}

// TakeDeclines adds the values of --declined (answers that count as refusals) that earlier runs left in the journal to those of this run. If there are any, warn is
// called with a text that names them.
func (f *ClientFlags) TakeDeclines(ctx context.Context, ses *Session, warn func(string)) error {
	_, known, err := KnownDeclines(ctx, ses)
	if err != nil {
		return err
	}
	earlier := slices.DeleteFunc(slices.Clone(known), func(text string) bool { return slices.Contains(f.declinedTexts, text) })
	if len(earlier) > 0 {
		text := DeclinedBy(earlier, ses.Place)
		if len(f.outcome.done) > 0 { // its verdicts are frozen at the begin of an operation
			text += "; beside --done it judges only what was begun before: say --declined again for what this run begins"
		}
		warn(text)
	}
	texts := withTexts(f.declinedTexts, earlier)
	if f.Declines, err = results.ParseDeclines(texts); err == nil {
		f.declinedSince, err = sinceOf(ctx, ses, texts, known, time.Now())
	}
	return err
}

// withTexts returns a copy of texts, with those of more added that it lacks.
func withTexts(texts, more []string) []string {
	texts = slices.Clone(texts)
	for _, text := range more {
		if !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return texts
}

// inFound returns the values of --declined for what a lookup finds: --done reads the resource alone, and so does --declined. The answer of a lookup has the
// resource in the list of the profile's Reference, as its only element. A value that leads into that list already needs no other. It returns nil where a
// lookup answers with the resource itself, or there is none.
func inFound(p *profile.Profile, texts []string) (all []string) {
	if p.Reference == nil || p.Reference.List == "" {
		return nil
	}
	for _, text := range texts {
		if strings.HasPrefix(text, "/") && !strings.HasPrefix(text, p.Reference.List+"/") {
			all = append(all, p.Reference.List+"/0"+text)
		}
	}
	return all
}

// WithDeclines returns a context for calls of the client. By it the client may begin the next generation (a new try under a new key) of an operation whose answer
// --declined takes for a refusal.
func (f *ClientFlags) WithDeclines(ctx context.Context) context.Context {
	return run.ContextWithDeclines(ctx, func(rec *persist.Record) bool { return f.Declines.ResultOfRecord(rec) == results.Declined })
}

// noDeclines is the value of persist.FactDeclined after all were taken back: a fact is never empty again.
const noDeclines = "\n"

// declinedTexts returns the values of --declined in fact, the text under which a journal keeps them, one a line; nil if there are none.
func declinedTexts(fact string) []string {
	if fact == "" || fact == noDeclines {
		return nil
	}
	return strings.Split(fact, "\n")
}

// ForgetDeclines takes values of --declined (answers that count as refusals) out of the journal: such answers count as done again. Other processes may change the
// list meanwhile; it is tried until no change came between.
func ForgetDeclines(ctx context.Context, ses *Session, texts []string) error {
	return ChangeFact(ctx, ses, persist.FactDeclined, func(standing string) string {
		if standing == "" {
			return ""
		}
		left := slices.DeleteFunc(declinedTexts(standing), func(text string) bool { return slices.Contains(texts, text) })
		return cmp.Or(strings.Join(left, "\n"), noDeclines) // a mark for none: an empty value cannot be written
	})
}

// DeclinedBy returns the sentence that tells the user of values of --declined given to earlier runs. texts are these values; at is the
// journal.
func DeclinedBy(texts []string, at place.Place) string {
	return "declined is also " + strings.Join(texts, " or ") + ", as batch and send were told (oncehttp journal declined --forget VALUE --journal " + at.Shell() + " takes one back)"
}

// KnownDeclines returns the values of --declined (answers that count as refusals) that earlier runs left in the journal, parsed and as texts. For a role without the
// right to read them it returns none, and no error.
func KnownDeclines(ctx context.Context, ses *Session) (results.Declines, []string, error) {
	fact, err := ses.Journal.Fact(ctx, persist.FactDeclined, nil, nil) // without values it only reads
	if err != nil && !errors.Is(err, persist.ErrDenied) {
		return nil, nil, place.JournalError(ses.Place.Name, err)
	}
	texts := declinedTexts(string(fact))
	list, err := results.ParseDeclines(texts)
	if err != nil {
		return nil, nil, fmt.Errorf("journal %s: it keeps a %w", ses.Place.Name, err)
	}
	return list, texts, nil
}
