package known

import (
	"fmt"
	"testing"
	"time"
)

// TestOrigins: one try in each period, periods that grow, and all at once when it
// is reached.
func TestOrigins(t *testing.T) {
	t.Parallel()
	var o Origins
	now := time.Unix(1000, 0)
	const least, most, try = time.Second, 5 * time.Second, time.Minute
	for range 2 {
		if !o.Try("a", "x", now, try) || o.Wait("a", now) != 0 {
			t.Error("an origin that never failed is not tried")
		}
	}
	for i, want := range []time.Duration{1, 2, 4, 5, 5} {
		want *= time.Second
		for range 2 { // of several that fail at once, one counts
			if got := o.Failed("a", now, least, most); got != now.Add(want) {
				t.Fatalf("failure %d: again after %v, want %v", i, got.Sub(now), want)
			}
		}
		if o.Try("a", "x", now.Add(want-1), try) || o.Wait("a", now) != want || !o.Try("b", "x", now, try) {
			t.Errorf("failure %d: tried too early", i)
		}
		now = now.Add(want)
		if !o.Try("a", "x", now, try) || o.Try("a", "y", now, try) || o.Wait("a", now) != try {
			t.Errorf("failure %d: want one try", i)
		}
		if !o.Open("a", "x") || o.Open("a", "y") || !o.Open("b", "y") {
			t.Errorf("failure %d: want one that goes on", i)
		}
	}
	now = now.Add(try)
	if !o.Try("a", "x", now, try) {
		t.Error("who tried never came back, and nobody tries again")
	}
	if !o.Reached("a") || o.Reached("a") || !o.Try("a", "x", now, try) || o.Wait("a", now) != 0 {
		t.Error("reached, and still not tried")
	}
}

// TestOriginsBounded: what does not fit is tried at any time.
func TestOriginsBounded(t *testing.T) {
	t.Parallel()
	var o Origins
	now := time.Unix(0, 0)
	for i := range originsMax + 10 {
		o.Failed(fmt.Sprint(i), now, time.Second, time.Minute)
	}
	if len(o.down) != originsMax || o.Try("0", "x", now, 1) || !o.Try(fmt.Sprint(originsMax), "x", now, 1) {
		t.Errorf("%d are remembered", len(o.down))
	}
}
