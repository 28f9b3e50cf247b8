package terminal

import (
	"errors"
	"testing"
)

// TestErrorsAreSaidOnce: what the work and the end of it say alike is one line; what they say apart is two.
func TestErrorsAreSaidOnce(t *testing.T) {
	t.Parallel()
	full := errors.New("journal j.db: not written: no space left on device")
	for name, c := range map[string]struct {
		work, closing error
		want          string
	}{
		"the same":            {full, errors.New(full.Error()), full.Error()},
		"one has a step":      {errors.New(full.Error() + "; run it again"), full, full.Error() + "; run it again"},
		"the end has it":      {full, errors.New("at its end: " + full.Error()), "at its end: " + full.Error()},
		"joined before":       {nil, errors.Join(full, full), full.Error()},
		"two things":          {errors.New("a"), errors.New("b"), "a\nb"},
		"everything was said": {ExitWith(ExitRefused), full, full.Error()},
	} {
		err := JoinExit(c.work, c.closing)
		if err.Error() != c.want || StatusOf(err) != ExitUnknown || !errors.Is(err, c.closing) {
			t.Errorf("%s: %d, %q; want %q", name, StatusOf(err), err, c.want)
		}
	}
	if err := JoinExit(full, nil); !errors.Is(err, full) || StatusOf(err) != ExitUsage {
		t.Errorf("closed well: %v", err)
	}
}
