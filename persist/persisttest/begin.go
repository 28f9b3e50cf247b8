package persisttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/oncehttp/oncehttp/persist"
)

// beginCases returns the cases about Journal.Begin and Journal.Get. why says what harm is done by a journal that fails the case.
func beginCases() []testCase {
	return []testCase{
		{name: "begin/creates", run: beginCreates,
			why: "what is begun is what a crash leaves to resume from: a field that is lost changes the request"},
		{name: "begin/existing", run: beginStanding,
			why: "a key that exists must be seen by the next caller as it exists, or the operation is done twice"},
		{name: "begin/one-creates", run: beginOneCreates,
			why: "if two callers create one key, both send"},
		{name: "begin/invalid", run: beginInvalid,
			why: "a record that breaks a rule cannot be resumed"},
		{name: "begin/cancelled", run: beginCancelled,
			why: "a caller who was told that nothing was begun must find nothing pending"},
		{name: "begin/accounts", run: beginAccounts,
			why: "two accounts that share a record pay for each other"},
		{name: "begin/any-bytes", run: beginAnyBytes,
			why: "keys and bodies are the caller's, and every byte of them counts"},
		{name: "begin/trace", run: beginTrace,
			why: "whoever sends an operation later links it to the call that began it; afterwards it is of no use"},
		{name: "begin/large", run: beginLarge,
			why: "a large request must come back as it was, and not as far as it fitted"},
		{name: "get/not-found", run: getNotFound,
			why: "ErrNotFound is how a caller learns that a key is free"},
		{name: "get/probe", run: getProbe,
			why: "a look that left a record would be an operation that nobody asked for"},
	}
}

// beginCreates is the case begin/creates. Begin stores every field of a new record, at revision 1 and with a growing number (Seq).
func beginCreates(k *check) {
	j := k.journal()
	last := uint64(0)
	for i, r := range []persist.Record{record("", "plain"), fullest("acct", "full"), record("acct", "other")} {
		got := k.begin(j, r)
		if got.Seq <= last {
			k.errorf("record %d has Seq %d after %d: it must grow", i, got.Seq, last)
		}
		last = got.Seq
		want := r
		want.Seq, want.Revision = got.Seq, 1
		if d := diff(got, want); d != "" {
			k.errorf("Begin of %q returned another record: %s", r.ID, d)
		}
		k.holds(j, want, "Begin")
	}
}

// beginStanding is the case begin/existing. Begin of an existing key returns the stored record and changes nothing, even if the given one is of another
// request.
func beginStanding(k *check) {
	ctx, j := context.Background(), k.journal()
	pending := k.begin(j, record("a", "pending"))
	held := k.begin(j, fullest("a", "held"))
	updated := k.update(j, changed(k.begin(j, record("a", "updated"))))
	final := k.finish(j, k.begin(j, record("a", "final")))
	for _, want := range []persist.Record{pending, held, updated, final} {
		for range 2 {
			again := record("a", want.Key)
			again.Body, again.Fingerprint = []byte("another request"), bytes.Repeat([]byte{1}, 32)
			got, created, err := j.Begin(ctx, again)
			if err != nil || created {
				k.errorf("Begin of existing %q: created %t, error %v", want.Key, created, err)
				continue
			}
			if d := diff(got, want); d != "" {
				k.errorf("Begin of existing %q: %s", want.Key, d)
			}
		}
		k.holds(j, want, "another Begin")
	}
}

// beginOneCreates is the case begin/one-creates. Of many Begins of one key at once, exactly one creates the record, and all get that record.
func beginOneCreates(k *check) {
	const callers, rounds = 16, 25
	ctx, j := context.Background(), k.journal()
	for round := range rounds {
		type result struct {
			rec     persist.Record
			created bool
			err     error
		}
		results := make([]result, callers)
		var wg sync.WaitGroup
		for i := range results {
			wg.Go(func() {
				r := record("a", fmt.Sprintf("key %d", round))
				r.Body = []byte(fmt.Sprintf("from caller %d", i))
				rec, created, err := j.Begin(ctx, r)
				results[i] = result{rec, created, err}
			})
		}
		wg.Wait()
		winners := 0
		for _, r := range results {
			if r.err != nil {
				k.fatalf("Begin: %v", r.err)
			}
			if r.created {
				winners++
			}
			if d := diff(r.rec, results[0].rec); d != "" {
				k.errorf("two callers saw different records: %s", d)
			}
		}
		if winners != 1 {
			k.fatalf("%d of %d callers created one key", winners, callers)
		}
	}
}

// beginInvalid is the case begin/invalid. Begin refuses a record that breaks a rule, and stores nothing.
func beginInvalid(k *check) {
	ctx, j := context.Background(), k.journal()
	for name, breakIt := range map[string]func(*persist.Record){
		"no key":               func(r *persist.Record) { r.Key = "" },
		"long trace":           func(r *persist.Record) { r.Trace = strings.Repeat("s", persist.TraceBytesMax+1) },
		"short fingerprint":    func(r *persist.Record) { r.Fingerprint = r.Fingerprint[:31] },
		"no wire key":          func(r *persist.Record) { r.WireKey = "" },
		"sent without a token": func(r *persist.Record) { r.ServerToken, r.WireKey, r.MaybeSent, r.FirstSent = true, "", true, epoch() },
		"no method":            func(r *persist.Record) { r.Method = "" },
		"held for no reason":   func(r *persist.Record) { r.State = persist.StateHeld },
		"sent, but never":      func(r *persist.Record) { r.MaybeSent = true },
		"state out of range":   func(r *persist.Record) { r.State = 200 },
		"begun final":          func(r *persist.Record) { *r = finished(*r) },
		"effect while pending": func(r *persist.Record) { r.Effect = persist.EffectHappened },
	} {
		r := record("a", "key of "+name)
		breakIt(&r)
		_, created, err := j.Begin(ctx, r)
		if created {
			k.errorf("Begin with %s created a record", name)
		}
		k.want(err, persist.ErrInvalid, "Begin with %s", name)
		if r.Key != "" {
			k.gone(j, r.ID, "a Begin with "+name)
		}
	}
	k.lists(j, persist.Query{AllAccounts: true}, nil, "what invalid Begins left")
}

// beginCancelled is the case begin/cancelled. Begin with an ended context returns its error, and stores
// nothing.
func beginCancelled(k *check) {
	j := k.journal()
	cause := errors.New("the caller has gone")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	r := record("a", "k")
	_, created, err := j.Begin(ctx, r)
	if created || !errors.Is(err, context.Canceled) {
		k.errorf("Begin with a context that has ended: created %t, error %v; want context.Canceled", created, err)
	}
	k.gone(j, r.ID, "a Begin that was cancelled before it began")
	k.begin(j, r)
}

// beginAccounts is the case begin/accounts. One key in two accounts means two records, however alike the names are; "a|S=1" is an account inside "a". Half of
// the records are ended, which must not touch the others.
func beginAccounts(k *check) {
	j := k.journal()
	var all []persist.Record
	for _, id := range []persist.ID{
		{Account: "", Key: "k"}, {Account: "a", Key: "k"}, {Account: "a|S=1", Key: "k"}, {Account: "a|S=2", Key: "k"},
		{Account: "ab", Key: "k"}, {Account: "a", Key: "bk"}, {Account: "A", Key: "k"}, {Account: "a", Key: "K"},
		{Account: "a", Key: "k "}, {Account: "a", Key: "\x00k"}, {Account: "a\x00", Key: "k"}, {Account: "k", Key: "a"},
	} {
		all = append(all, k.begin(j, record(id.Account, id.Key)))
	}
	for i, r := range all {
		if i%2 == 0 {
			all[i] = k.finish(j, r)
		}
	}
	for _, r := range all {
		k.holds(j, r, "the same key was begun in other accounts")
	}
}

// beginAnyBytes is the case begin/any-bytes. Keys, accounts, targets, headers and bodies may contain any bytes.
func beginAnyBytes(k *check) {
	j := k.journal()
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	var all []persist.Record
	for i, key := range []string{string(every), "\xff\xfe", "ключ", strings.Repeat("long", 2500), "a\nb", "%00"} {
		r := record(fmt.Sprintf("account %d \xff", i), key)
		r.Body = every[:i*50]
		r.Header.Set("X-Bytes", string(every))
		r.Target = "/" + string(every)
		all = append(all, k.begin(j, r))
	}
	for _, r := range all {
		k.holds(j, r, "Begin")
	}
}

// beginLarge is the case begin/large. A large record is stored whole. The sizes lie around bounds at which journals may store a body in another way.
func beginLarge(k *check) {
	j := k.journal()
	var all []persist.Record
	for i, size := range []int{4095, 4096, 16 << 10, 16<<10 + 1, 64 << 10, 64<<10 + 1, 1<<20 + 7} {
		r := record("a", fmt.Sprintf("%d bytes", size))
		r.Body = patterned(size, byte(i))
		all = append(all, k.begin(j, r))
	}
	for i, r := range all {
		k.holds(j, r, "Begin")
		if i%2 == 0 {
			continue
		}
		f := finished(r)
		f.Answer.Body = patterned(len(r.Body)/2+1, byte(i))
		if err := j.Finish(context.Background(), f); err != nil {
			k.fatalf("Finish with an answer of %d bytes: %v", len(f.Answer.Body), err)
		}
		f.Revision++
		all[i] = f
		k.holds(j, f, "Finish")
	}
	k.lists(j, persist.Query{Account: "a"}, all, "large records")
}

// patterned returns n bytes without two long equal stretches, so that a lost or exchanged part of a body shows. salt makes bodies of one length differ.
func patterned(n int, salt byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i) ^ byte(i>>8)*31 ^ byte(i>>16)*17 ^ salt
	}
	return b
}

// getNotFound is the case get/not-found. Get of an unknown ID returns ErrNotFound.
func getNotFound(k *check) {
	ctx, j := context.Background(), k.journal()
	k.begin(j, record("a", "k"))
	for _, id := range []persist.ID{{Account: "a", Key: "l"}, {Account: "b", Key: "k"}, {Account: "a", Key: ""}, {}} {
		_, err := j.Get(ctx, id)
		k.want(err, persist.ErrNotFound, "Get of %q", id)
	}
}

// getProbe is the case get/probe. A persist.Prober returns the same as Get while no transaction is open, and leaves nothing. With an ended context it must not
// say that there is no record.
func getProbe(k *check) {
	ctx, j := context.Background(), k.journal()
	prober, can := persist.As[persist.Prober](j)
	if !can {
		return
	}
	r := record("a", "probed")
	for range 2 {
		if got, err := prober.Probe(ctx, r.ID); !errors.Is(err, persist.ErrNotFound) {
			k.errorf("Probe of nothing: state %v, error %v; want ErrNotFound", got.State, err)
		}
	}
	k.gone(j, r.ID, "a Probe")
	k.lists(j, persist.Query{AllAccounts: true}, nil, "after a Probe")
	r = k.begin(j, r)
	for range 2 {
		got, err := prober.Probe(ctx, r.ID)
		if err != nil {
			k.fatalf("Probe: %v", err)
		}
		if d := diff(got, r); d != "" {
			k.errorf("Probe: %s", d)
		}
	}
	ended, end := context.WithCancel(ctx)
	end()
	if _, err := prober.Probe(ended, persist.ID{Account: "a", Key: "none"}); err == nil || errors.Is(err, persist.ErrNotFound) {
		k.errorf("Probe with an ended context: %v", err)
	}
}

// beginTrace is the case begin/trace. A record keeps a trace of the largest size until a sweep, and no change of the record changes it: it is part of what
// Begin freezes. A trace is the header traceparent, 55 bytes, a ';' and the header tracestate.
func beginTrace(k *check) {
	j := k.journal()
	r := record("a", "traced")
	r.Trace = strings.Repeat("0", 55) + ";" + strings.Repeat("s", persist.TraceBytesMax-56)
	r = k.begin(j, r)
	k.holds(j, r, "Begin with a trace")
	changed := r
	changed.Trace, changed.Attempts = "", 1
	if _, err := j.Update(context.Background(), changed); err != nil {
		k.fatalf("Update: %v", err)
	}
	r.Attempts, r.Revision = 1, r.Revision+1
	k.holds(j, r, "an Update without the trace, which is frozen")
	r = k.finish(j, r)
	k.holds(j, r, "a Finish of a record with a trace")
	k.sweep(j, persist.Limits{Prune: true, KeepAnswer: -1, Now: done()}, 1)
	k.swept(j, r, "a Sweep")
}
