package house_test

import (
	"context"
	"net/http"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// enteredFiles are the files of this module on the stack of its caller, from the
// outermost on, each as often as it is entered from another one of them.
func enteredFiles() (files []string) {
	pcs := make([]uintptr, 200)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		frame, more := frames.Next()
		name, isOurs := strings.CutPrefix(frame.Function, module)
		if file := filepath.Base(frame.File); isOurs && !strings.HasPrefix(name, "_test") && !strings.HasSuffix(file, "_test.go") {
			if file = filepath.Base(filepath.Dir(frame.File)) + "/" + file; len(files) == 0 || files[0] != file {
				files = slices.Insert(files, 0, file)
			}
		}
		if !more {
			return files
		}
	}
}

// watchedJournal is a journal that looks at the stack of each Begin and Finish.
type watchedJournal struct {
	persist.Journal
	watch func(at string)
}

func (j *watchedJournal) Begin(ctx context.Context, rec persist.Record) (persist.Record, bool, error) {
	j.watch("Begin")
	return j.Journal.Begin(ctx, rec)
}

func (j *watchedJournal) Finish(ctx context.Context, rec persist.Record) error {
	j.watch("Finish")
	return j.Journal.Finish(ctx, rec)
}

// TestPathIsShort: from Do to the wire and back, a reader enters no file more than
// twice.
func TestPathIsShort(t *testing.T) {
	t.Parallel()
	seen := map[string][]string{}
	watch := func(at string) { seen[at] = enteredFiles() }
	j := &watchedJournal{memory.New(), watch}
	w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201}}, Before: func(int, *http.Request) { watch("RoundTrip") }}
	c, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) { cfg.Retry.MinDelay = 1 }))
	req := clienttest.Post(t, "{}").WithContext(context.Background()) // it cannot end, so that all is on one goroutine
	if _, err := c.DoKey(req, "k"); err != nil || w.Count() != 2 {
		t.Fatalf("%v after %d sends", err, w.Count())
	}
	for _, at := range []string{"Begin", "RoundTrip", "Finish"} {
		files := seen[at]
		if len(files) < 3 || !strings.HasSuffix(files[0], "/client.go") {
			t.Errorf("at %s: %v", at, files)
		}
		entered := map[string]int{}
		for _, file := range files {
			if entered[file]++; entered[file] > 2 {
				t.Errorf("at %s %s is entered more than twice: %v", at, file, files)
			}
		}
		t.Logf("%s: %v", at, files)
	}
}
