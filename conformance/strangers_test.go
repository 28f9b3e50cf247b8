package conformance_test

import (
	"flag"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/conformance"
	"github.com/oncehttp/oncehttp/conformance/targets/strangers"
	"github.com/oncehttp/oncehttp/conformance/targets/strangers/example"
	"github.com/oncehttp/oncehttp/conformance/targets/strangers/set1"
	"github.com/oncehttp/oncehttp/conformance/targets/strangers/set2"
	"github.com/oncehttp/oncehttp/conformance/targets/strangers/set3"
)

// The figures of docs/conformance-results.md.
//
//	go test ./conformance -run TestStrangers -v -timeout 60m -args -strangers -histories 300
var (
	strangersFlag = flag.Bool("strangers", false, "judge all servers of conformance/targets/strangers, and not only the examples")
	strangerFlag  = flag.String("stranger", "", "judge only those whose name has this in it")
	noCasesFlag   = flag.Bool("no-cases", false, "judge them by the search and by volume alone")
)

// strangerOptions are for a server of conformance/targets/strangers at that URL.
func strangerOptions(url string) conformance.Options {
	o := sampleOptions(url)
	o.Settle = 2 * time.Second
	return o
}

// leftOpen are cases about what the page of the strangers leaves open: which keys are refused, how a refusal looks, how
// long a duplicate is to wait, the white space of a replay, whether failures are stored, and HEAD.
var leftOpen = []string{"key/**", "conflict/error-shape", "inflight/status-or-wait", "inflight/retry-after-*", "replay/body-bytes", "outcome/5xx", "scope/head-options"}

// strangerModes are the ways in which the suite judges a server: the search, the cases, and volume.
func strangerModes() []func(o *conformance.Options) {
	return []func(o *conformance.Options){
		func(o *conformance.Options) {
			o.Explore, o.Histories, o.MaxEffects, o.MaxFindings = true, *historiesFlag, 1_000_000, 3
		},
		func(o *conformance.Options) { o.Skip = leftOpen },
		func(o *conformance.Options) { o.Volume, o.MaxEffects = true, 1_500 },
	}
}

// The suite finds what is wrong with servers that its author has not written, and nothing in those that are right. It is
// told neither which are which nor what is wrong.
func TestStrangers(t *testing.T) {
	t.Parallel()
	all, modes := example.Servers(), strangerModes()[:1]
	if *strangersFlag {
		all, modes = slices.Concat(set1.Servers(), set2.Servers(), set3.Servers()), strangerModes()
	}
	if *noCasesFlag {
		modes = slices.Delete(modes, min(1, len(modes)), min(2, len(modes)))
	}
	all = slices.DeleteFunc(all, func(s strangers.Server) bool { return !strings.Contains(s.Name, *strangerFlag) })
	var wrong, found, cleared atomic.Int64
	virtually(t, all, func(t *testing.T, _ int, s strangers.Server) {
		var ids []string
		var said string
		for _, mode := range modes {
			o := strangerOptions(serve(t, s.New()))
			mode(&o)
			rep := run(t, o)
			if more := faults(rep); len(more) > 0 {
				ids, said = append(ids, more...), said+text(rep)
			}
			if len(ids) > 0 && s.Wrong != "" {
				break
			}
		}
		t.Logf("%-7s %-34s %v", map[bool]string{true: "right", false: "broken"}[s.Wrong == ""], s.Name, ids)
		switch {
		case s.Wrong != "":
			wrong.Add(1)
			found.Add(int64(oneIf(len(ids) > 0)))
		case len(ids) == 0:
			cleared.Add(1)
		}
		if (s.Wrong == "") != (len(ids) == 0) {
			t.Errorf("%s (%s): got findings %v\n%s", s.Name, s.Wrong, ids, said)
		}
	})
	t.Logf("%d of %d broken servers found, %d of %d right ones cleared", found.Load(), wrong.Load(), cleared.Load(), int64(len(all))-wrong.Load())
}

// A right server may put off any request with 503, before its work: the cases send it again, and find nothing.
func TestPutOff(t *testing.T) {
	t.Parallel()
	all := slices.DeleteFunc(slices.Concat(set1.Servers(), set3.Servers()), func(s strangers.Server) bool { return s.Name != "late-and-shy" && s.Name != "fifth-503" })
	if len(all) != 2 {
		t.Fatalf("%d servers put requests off, want 2", len(all))
	}
	virtually(t, all, func(t *testing.T, _ int, s strangers.Server) {
		o := strangerOptions(serve(t, s.New()))
		o.Skip = append([]string{"net/expect-continue"}, leftOpen...) // no 100 (Continue) comes before such a 503
		if rep := run(t, o); len(faults(rep)) > 0 {
			t.Errorf("%s: got findings %v\n%s", s.Name, faults(rep), text(rep))
		}
	})
}
