package journal

import (
	"context"
	"iter"
	"net/http"
	"slices"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/acts"
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

// Unwrap returns the journal below, so that its optional interfaces are found.
func (j keysJournal) Unwrap() persist.Journal { return j.Journal }

// all returns the journal below, which shows all keys. The counting of operations that are left needs it.
func (j keysJournal) all() persist.Journal { return j.Journal }

// List yields those records selected by q whose key is one of the named keys.
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

// onlyKeys returns a journal that lists and claims only the operations of these keys, so that Resume sends no other. (A claim keeps other processes from sending an
// operation.) The result implements persist.Claimer only if the journal does.
func onlyKeys(j persist.Journal, keys []string) persist.Journal {
	limited := keysJournal{j, keys}
	if claimer, shared := persist.As[persist.Claimer](j); shared { // a journal on a server, which several processes share
		return keysClaimer{limited, claimer}
	}
	return limited
}

// keysClaimer is keysJournal over a journal shared by several processes.
type keysClaimer struct {
	keysJournal
	persist.Claimer
}

// Claim implements persist.Claimer for operations with one of the keys only. It claims up to n of them for owner, so that no other process sends them until the time
// lease is over. now is the time by the journal's clock.
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

// dryRun prints for each unfinished operation whether journal resume would send it, and else why not. It sends and writes nothing. cfg is the client's configuration,
// and header the headers of -H.
func (f *resumeFlags) dryRun(ctx context.Context, ses *session.Session, cfg oncehttp.Config, header http.Header, keys []string, s terminal.Streams) error {
	keys, err := f.spelled(ctx, ses, keys)
	if err != nil {
		return err
	}
	if len(keys) > 0 {
		ses.Journal = onlyKeys(ses.Journal, keys)
	}
	cfg, err = f.aimed(ctx, ses, cfg, header)
	if err != nil {
		return err
	}
	from, err := session.SenderOf(ctx, ses, cfg)
	if err != nil {
		return err
	}
	would := &prospect{from: from, restored: f.restored, hasHeaders: len(header) > 0, now: time.Now()}
	columns := []column{
		{"KEY", func(rec *persist.Record) string { return rec.Key }},
		{"WOULD", func(rec *persist.Record) string { return would.text(*rec) }},
		{"STATE", view.StateText},
		{"SENT", sentText},
		{"ATTEMPTS", clock{leased: !ses.Place.IsFile()}.attempts},
		{"REQUEST", func(rec *persist.Record) string { return rec.Method + " " + rec.Origin + words.PathOf(rec.Target) }},
	}
	w := newTableWriter(s.Out, columns)
	q := f.Query()
	q.States = unfinished()
	see := ses.Seeing(ctx) // Seeing asks for the time, and so comes before the records are read
	err = session.EachRecord(ctx, ses, q, func(rec *persist.Record) error {
		look(see, rec)
		return w.write(rec)
	})
	if ferr := w.end(); err == nil && ferr != nil {
		return &terminal.ExitError{Status: terminal.ExitUnknown, Err: words.Pathless(ferr)}
	}
	would.held.say(s.Err)           // what stays held since a restore
	if err == nil && f.HasAccount { // what stands under no account is not sent for this one
		err = f.sayNone(ctx, ses, f.Account, s.Err)
	}
	return err
}

// prospect counts the acts of a resume that is not made.
type prospect struct {
	from                 *session.Sender
	restored, hasHeaders bool
	now                  time.Time
	held                 heldBack // the operations that stay held as restored
}

// text returns what journal resume would do with a record: "send", "settle it", "hold it", "wait", "leave it" or "fail", with the reason. With --restored, an
// operation held since a restore counts as released, if the client may send it.
func (p *prospect) text(rec persist.Record) string {
	lack := p.from.Lacks(&rec)
	op := operation.OpOf(&rec, 0) // 0: for how long the API knows the key, the record says
	if p.restored {
		released, is := acts.Released(op) // is: it was held since a restore; else released is op
		if is && lack.Need != acts.Nothing {
			p.held.add(session.LackText(lack, &rec))
			return "leave it held: " + session.LackText(lack, &rec)
		}
		op = released
	}
	if sending := view.SendingText(&rec, p.now); sending != "" {
		return "wait: " + sending
	}
	switch operation.ProspectOf(&op, p.now) {
	case operation.WaitsForWord, operation.WaitsForTruth: // held: a person, or the program (Reconcile), says what came of it
		return "wait until it is settled"
	case operation.WaitsForTime:
		return "wait until " + op.NextAttempt.UTC().Format(time.RFC3339)
	case operation.WillBeProven:
		return "settle it: an event of the API proves that it happened"
	case operation.WaitsForClock:
		return "wait: the clock stands before its first send"
	case operation.WillHaveNoKey:
		return "hold it: it may have been sent, and no key protects another send"
	case operation.WillExpire:
		return "hold it: the server may have forgotten the key"
	case operation.WillBeLate:
		return "hold it: its time for a first send is over"
	}
	omits := len(rec.Omitted) > 0 && !p.hasHeaders // its credentials are in no journal, and -H does not give them: said in place of a missing Authorize
	switch {
	case lack.Need != acts.Nothing && !(lack.Need == acts.Authorize && omits):
		return "leave it: " + session.LackText(lack, &rec)
	case omits:
		return "fail: " + session.OmittedText(&rec)
	}
	return "send"
}
