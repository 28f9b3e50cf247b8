package intent

import (
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// TestKeepsKey: the key of a later generation is kept for ever, like the placeholders below it. So is that of the first place of an account which a request names by a header,
// and that of an operation in the place of one kept for ever. Any other is kept as the Config says.
func TestKeepsKey(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		place KeysPlace
		keep  time.Duration
		want  time.Duration
	}{
		"the first try":                           {KeysPlace{Key: "k"}, time.Hour, time.Hour},
		"no longer than the answer":               {KeysPlace{Key: "k"}, -1, -1},
		"the second try":                          {KeysPlace{Key: "k:gen=2"}, time.Hour, 0},
		"the third try":                           {KeysPlace{Key: "k:gen=3"}, -1, 0},
		"a place with a header":                   {KeysPlace{Key: "k", Base: true, Scoped: true}, time.Hour, 0},
		"a second place":                          {KeysPlace{Key: "k", Scoped: true}, time.Hour, time.Hour},
		"a place without a header":                {KeysPlace{Key: "k", Base: true}, time.Hour, time.Hour},
		"in the place of what is kept for ever":   {KeysPlace{Key: "other", Replaced: &persist.Record{}}, time.Hour, 0},
		"in the place of what is kept for a time": {KeysPlace{Key: "other", Replaced: &persist.Record{KeepKey: time.Hour}}, time.Minute, time.Minute},
	} {
		if got := c.place.KeepsKey(c.keep); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestKeepingWithin: neither key nor text goes within the window, and no key before what is enqueued beside it was sent for the first time, or is held.
func TestKeepingWithin(t *testing.T) {
	t.Parallel()
	const window, waits, day = time.Hour, 3 * time.Hour, 24 * time.Hour
	for name, c := range map[string]struct{ keep, want Keeping }{
		"nothing is said":             {Keeping{}, Keeping{Answer: window}},
		"long":                        {Keeping{day, day, day}, Keeping{day, day, day}},
		"short":                       {Keeping{1, 1, 1}, Keeping{1, waits, window}},
		"between the two":             {Keeping{day, 2 * time.Hour, 2 * time.Hour}, Keeping{day, waits, 2 * time.Hour}},
		"no longer than a long one":   {Keeping{day, -1, -1}, Keeping{day, -1, -1}},
		"no longer than the window":   {Keeping{window, -1, -1}, Keeping{window, waits, -1}},
		"no longer than no answer":    {Keeping{-1, -1, -1}, Keeping{-1, waits, window}},
		"for ever, without an answer": {Keeping{Answer: -1}, Keeping{Answer: -1}},
	} {
		if got := c.keep.Within(window, waits); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	if got := (Keeping{}).Within(0, waits); got.Answer != -1 {
		t.Errorf("without a window: %+v", got)
	}
}

// TestLinked: an operation in whose place another one is begun names it, and is kept for ever, also after the name was taken back.
func TestLinked(t *testing.T) {
	t.Parallel()
	linked := Linked(persist.Record{KeepKey: time.Hour}, "next")
	if back := Unlinked(linked); linked.ReplacedBy != "next" || linked.KeepKey != 0 || back.ReplacedBy != "" || back.KeepKey != 0 {
		t.Errorf("%+v, and back %+v", linked, back)
	}
}
