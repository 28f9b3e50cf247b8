package journal

import (
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/view"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// keysJournal shows only some keys to a Resume. All else goes to the journal
// itself.
type keysJournal struct {
	persist.Journal
	keys []string
}

// Unwrap returns the journal itself, for the optional interfaces.
func (j keysJournal) Unwrap() persist.Journal { return j.Journal }

// List yields the records of q with one of the keys.
func (j keysJournal) List(ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
	return func(yield func(persist.Record, error) bool) {
		for rec, err := range j.Journal.List(ctx, q) {
			if err == nil && !slices.Contains(j.keys, rec.Key) {
				continue
			}
			if !yield(rec, err) {
				return
			}
		}
	}
}

// onlyKeys shows only these keys of the journal to a Resume.
func onlyKeys(j persist.Journal, keys []string) persist.Journal {
	limited := keysJournal{j, keys}
	if claimer, shared := persist.As[persist.Claimer](j); shared {
		return keysClaimer{limited, claimer}
	}
	return limited
}

// keysClaimer is keysJournal over a journal shared by several processes.
type keysClaimer struct {
	keysJournal
	persist.Claimer
}

// Claim is persist.Claimer's.
func (j keysClaimer) Claim(ctx context.Context, q persist.Query, owner string, lease time.Duration, n int) (all []persist.Record, now time.Time, err error) {
	for _, key := range j.keys {
		var claimed []persist.Record
		q.Key = key
		claimed, now, err = j.Claimer.Claim(ctx, q, owner, lease, n-len(all))
		if all = append(all, claimed...); err != nil || len(all) >= n {
			break
		}
	}
	return all, now, err
}

// dryRun prints the operations for a resume to send, and the reasons against sending the rest.
func (f *resumeFlags) dryRun(ctx context.Context, ses *session.Session, keys []string, hasHeaders bool, s terminal.Streams) error {
	now := time.Now()
	columns := []column{
		{"KEY", func(rec *persist.Record) string { return rec.Key }},
		{"WOULD", func(rec *persist.Record) string { return f.wouldText(*rec, hasHeaders, now) }},
		{"STATE", view.StateText},
		{"SENT", sentText},
		{"ATTEMPTS", clock{leased: !ses.Place.IsFile()}.attempts},
		{"REQUEST", func(rec *persist.Record) string { return rec.Method + " " + rec.Origin + words.PathOf(rec.Target) }},
	}
	w := newTableWriter(s.Out, columns)
	q := f.Query()
	q.States = unfinished()
	see := ses.Seeing(ctx)
	err := session.EachRecord(ctx, ses, q, func(rec *persist.Record) error {
		if len(keys) > 0 && !slices.Contains(keys, rec.Key) {
			return nil
		}
		look(see, rec)
		return w.write(rec)
	})
	if ferr := w.end(); err == nil && ferr != nil {
		return &terminal.ExitError{Status: terminal.ExitUnknown, Err: words.Pathless(ferr)}
	}
	if err == nil && f.HasAccount {
		err = f.sayNone(ctx, ses, f.Account, s.Err)
	}
	return err
}

// wouldText returns the action of a resume on the record. With --restored, a record held as restored counts as pending.
func (f *resumeFlags) wouldText(rec persist.Record, hasHeaders bool, now time.Time) string {
	if sending := view.SendingText(&rec, now); sending != "" {
		return "wait: " + sending
	}
	op := operation.OpOf(&rec, 0)
	if f.restored {
		op, _ = op.Released()
	}
	switch op.Prospect(now) {
	case operation.WaitsForWord:
		return "wait until it is settled"
	case operation.WaitsForTime:
		return "wait until " + op.NextAttempt.UTC().Format(time.RFC3339)
	case operation.WillBeProven:
		return "settle it: an event of the API proves that it happened"
	case operation.WillExpire:
		return "hold it: the server may have forgotten the key"
	case operation.WillBeLate:
		return "hold it: its time for a first send is over"
	}
	if len(rec.Omitted) > 0 && !hasHeaders {
		return "fail: it needs " + strings.Join(rec.Omitted, ", ") + " (-H)"
	}
	return "send"
}
