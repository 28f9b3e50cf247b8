package landing

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

func record(seq uint64) *persist.Record { return &persist.Record{Seq: seq, Window: time.Hour} }

// TestMay: a statement may land until its record has ended, or is sent no more; a late one only beside the record that a later try began.
func TestMay(t *testing.T) {
	t.Parallel()
	enqueued := record(1)
	enqueued.Created = time.Unix(1, 0)
	enqueued.SendBefore = enqueued.Created.Add(time.Hour)
	for name, r := range map[string]struct {
		note  func(*Begins)
		after time.Duration
		seq   uint64
		want  bool
	}{
		"nothing":                 {note: func(*Begins) {}},
		"late":                    {func(b *Begins) { b.Late("k", record(1)) }, 0, 1, true},
		"late, begun anew":        {func(b *Begins) { b.Late("k", record(1)) }, 0, 2, false},
		"late, another":           {func(b *Begins) { b.Late("l", record(1)) }, 0, 1, false},
		"late, at its time":       {func(b *Begins) { b.Late("k", record(1)) }, time.Hour, 1, true},
		"late, after its time":    {func(b *Begins) { b.Late("k", record(1)) }, time.Hour + 1, 1, false},
		"lost":                    {func(b *Begins) { b.Lost("k", record(0)) }, 0, 7, true},
		"lost, after its time":    {func(b *Begins) { b.Lost("k", record(0)) }, time.Hour + 1, 7, false},
		"lost, then late":         {func(b *Begins) { b.Lost("k", record(0)); b.Late("k", record(1)) }, 0, 2, true},
		"enqueued, at its time":   {func(b *Begins) { b.Lost("k", enqueued) }, 2 * time.Hour, 1, true},
		"enqueued, after that":    {func(b *Begins) { b.Lost("k", enqueued) }, 2*time.Hour + 1, 1, false},
		"ended":                   {func(b *Begins) { b.Lost("k", record(1)); b.End("k") }, 0, 1, false},
		"another of them ended":   {func(b *Begins) { b.Lost("k", record(1)); b.End("l") }, 0, 1, true},
		"ended, and lost again":   {func(b *Begins) { b.Late("k", record(1)); b.End("k"); b.Lost("k", record(0)) }, 0, 2, true},
		"a later time for a note": {func(b *Begins) { b.Late("k", record(1)); time.Sleep(time.Hour); b.Late("k", record(1)) }, time.Hour, 1, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			var b Begins
			r.note(&b)
			time.Sleep(r.after)
			if got := b.May("k", r.seq); got != r.want {
				t.Errorf("%s: %v, want %v", name, got, r.want)
			}
		})
	}
}

// TestBound: one more than are kept lets no record be forgotten until its time; those whose time is over make room.
func TestBound(t *testing.T) {
	t.Parallel()
	for _, most := range []int{1, 10, 101} {
		synctest.Test(t, func(t *testing.T) {
			b := Begins{Most: most}
			fill := func(from int) {
				for i := range most {
					b.Lost(fmt.Sprint(from+i), record(0))
				}
			}
			fill(0)
			if b.May("other", 1) {
				t.Errorf("%d of %d: no record may be forgotten", most, most)
			}
			b.Lost("0", record(0)) // is there
			if b.May("other", 1) || len(b.at) != most {
				t.Errorf("one twice: no record may be forgotten, or %d of %d are kept", len(b.at), most)
			}
			time.Sleep(time.Minute)
			b.Lost("more", record(0))
			if !b.May("other", 1) || len(b.at) > most {
				t.Errorf("one more than %d: any record may be forgotten, or %d are kept", most, len(b.at))
			}
			time.Sleep(time.Hour)
			if !b.May("other", 1) {
				t.Error("at the time of the one that is not kept any record may be forgotten")
			}
			time.Sleep(time.Nanosecond)
			fill(most)
			if b.May("other", 1) || !b.May(fmt.Sprint(most), 1) || b.May("0", 1) || len(b.at) != most {
				t.Errorf("after their time: %d of %d are kept, another may land %v", len(b.at), most, b.May("other", 1))
			}
		})
	}
}

// TestRoomForMany: notes that are kept to their end cost no more where there are more.
func TestRoomForMany(t *testing.T) {
	t.Parallel()
	var b Begins
	for i := range Most {
		b.Lost(fmt.Sprint(i), record(0))
	}
	if len(b.at) != Most || b.May("other", 1) || !b.May("0", 1) {
		t.Errorf("%d of %d are kept", len(b.at), Most)
	}
}
