package persisttest

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/oncehttp/oncehttp/persist"
)

// factCases returns the cases about Journal.Fact: named values of the journal as a whole. why says what harm is done by a journal that fails the case. A
// durable case closes the journal and opens it again.
func factCases() []testCase {
	return []testCase{
		{name: "fact/stands", run: factStands,
			why: "what holds for a journal is what its first user wrote: whoever comes later must not write over it"},
		{name: "fact/changes", run: factChanges,
			why: "a command that changes what holds for a journal must know what it replaces"},
		{name: "fact/once", run: factOnce,
			why: "of a process that seals and one that does not, which begin at once, exactly one may begin the journal"},
		{name: "fact/bounds", run: factBounds,
			why: "a fact that an engine cuts off is another one"},
		{name: "fact/reopen", run: factReopen, durable: true,
			why: "after a restart a journal that is sealed must not be taken for one in clear"},
	}
}

// fact calls Fact, which must return want, the value that is there afterwards: it writes value if old is there, nil for none. A nil value only reads.
func (k *check) fact(j persist.Journal, name string, old, value, want []byte) {
	got, err := j.Fact(context.Background(), name, old, value)
	if err != nil || !bytes.Equal(got, want) {
		k.errorf("Fact %q, %q in the place of %q: %q, %v; want %q", name, value, old, got, err, want)
	}
}

// factStands is the case fact/stands: the first value of a fact (a named value of the journal as a whole) stays, also if another value is written with no old
// value, and through other changes of the journal.
func factStands(k *check) {
	j := k.journal()
	k.fact(j, "form", nil, nil, nil)
	k.fact(j, "form", nil, []byte("plain"), []byte("plain"))
	k.fact(j, "form", nil, []byte("sealed"), []byte("plain"))
	k.fact(j, "form", nil, nil, []byte("plain"))
	k.fact(j, "origins", nil, nil, nil)
	k.fact(j, "origins", nil, []byte{0, 255, 0}, []byte{0, 255, 0})
	k.begin(j, record("a", "in between"))
	k.fact(j, "form", nil, nil, []byte("plain"))
	got, err := j.Fact(context.Background(), "form", nil, nil)
	if err != nil {
		k.fatalf("Fact: %v", err)
	}
	clear(got) // it is the caller's
	k.fact(j, "form", nil, nil, []byte("plain"))
}

// factChanges is the case fact/changes. Fact replaces a named value of the journal only if the caller gives the old one. It returns the value that is there
// afterwards.
func factChanges(k *check) {
	j := k.journal()
	k.fact(j, "form", []byte("plain"), []byte("sealing"), nil) // there is nothing to replace
	k.fact(j, "form", nil, []byte("plain"), []byte("plain"))
	k.fact(j, "form", []byte("sealed"), []byte("sealing"), []byte("plain"))
	k.fact(j, "form", []byte("plai"), []byte("sealing"), []byte("plain"))
	k.fact(j, "form", []byte("plain"), []byte("sealing"), []byte("sealing"))
	k.fact(j, "form", []byte("plain"), []byte("other"), []byte("sealing"))
	k.fact(j, "form", nil, nil, []byte("sealing"))
}

// factOnce is the case fact/once. Of many changes of one fact (a named value of the journal) at once, exactly one succeeds. Two rounds write a fact that is not
// there, and two replace one.
func factOnce(k *check) {
	j, ctx := k.journal(), context.Background()
	for round, old := range [][]byte{nil, []byte("first"), nil, []byte("first")} {
		name := fmt.Sprintf("seal-%c", 'a'+round)
		if old != nil {
			k.fact(j, name, nil, old, old)
		}
		var wg sync.WaitGroup
		var won atomic.Int32
		for i := range 8 {
			wg.Go(func() {
				mine := fmt.Appendf(nil, "process %d", i)
				got, err := j.Fact(ctx, name, old, mine)
				if err != nil {
					k.errorf("Fact: %v", err)
				}
				if bytes.Equal(got, mine) {
					won.Add(1)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			k.errorf("round %d: %d of 8 have written one fact in the place of %q", round, won.Load(), old)
		}
	}
}

// factBounds is the case fact/bounds. Fact takes names (up to 16 lower-case letters and '-') and values up to their limits, and refuses all others.
func factBounds(k *check) {
	j, ctx := k.journal(), context.Background()
	long := bytes.Repeat([]byte{7}, persist.FactMax)
	k.fact(j, "abcdefgh-ijklmno", nil, long, long)
	for _, name := range []string{"", "abcdefgh-ijklmnop", "Seal", "journal.secret", "a b", "a\x00"} {
		_, err := j.Fact(ctx, name, nil, []byte("x"))
		k.want(err, persist.ErrInvalid, "Fact %q", name)
	}
	for _, value := range [][]byte{{}, append(long, 7)} {
		_, err := j.Fact(ctx, "form", nil, value)
		k.want(err, persist.ErrInvalid, "a Fact of %d bytes", len(value))
	}
	k.fact(j, "form", nil, nil, nil)
}

// factReopen is the case fact/reopen. Facts (named values of the journal) are the same after a restart.
func factReopen(k *check) {
	j := k.journal()
	k.fact(j, "form", nil, []byte("plain"), []byte("plain"))
	k.fact(j, "origins", nil, []byte("one"), []byte("one"))
	k.begin(j, record("a", "in between"))
	k.fact(j, "origins", []byte("one"), []byte("two"), []byte("two"))
	for range 2 {
		j = k.reopen(j)
		k.fact(j, "form", nil, nil, []byte("plain"))
		k.fact(j, "origins", nil, nil, []byte("two"))
		k.fact(j, "form", nil, []byte("other"), []byte("plain"))
	}
}
