package conformance_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/conformance"
	"github.com/oncehttp/oncehttp/mockserver"
)

// explored are options for a search of a sample.
func explored(o conformance.Options, histories int) conformance.Options {
	o.Explore, o.Histories, o.MaxEffects = true, histories, 1_000_000
	return o
}

// rightServer is one that the search finds nothing in.
type rightServer struct {
	about string
	start func(t *testing.T) conformance.Options
}

// rightServers are the mock, every variant of the sample, and n that are drawn.
func rightServers(n int, seed uint64) []rightServer {
	all := []rightServer{{"the mock", func(t *testing.T) conformance.Options {
		return options(start(t, mockserver.Config{Profile: releasing()}), releasing())
	}}}
	add := func(about string, one right) {
		all = append(all, rightServer{about, func(t *testing.T) conformance.Options {
			_, url := newSample(t, one.choices, one.q)
			o := sampleOptions(url)
			o.Profile = one.declare()
			return o
		}})
	}
	for _, c := range allVariants() {
		add(fmt.Sprintf("%+v", c), right{choices: c})
	}
	for _, one := range drawRights(n, seed) {
		add(fmt.Sprintf("%+v takes for the same: %s", one.choices, one.takes), one)
	}
	return all
}

// The flags of the measure. Without them the gate takes a few of each.
//
//	go test ./conformance -run TestExplored -timeout 60m -v -args -mutants 200 -rights 100
var (
	mutantsFlag   = flag.Int("mutants", 20, "how many mutants are drawn")
	rightsFlag    = flag.Int("rights", 10, "how many right servers are drawn, and judged beside a few variants; over 50: beside all")
	historiesFlag = flag.Int("histories", 120, "how many sequences are drawn for each")
)

// The search finds nothing in a right server, whichever of the right choices it has made.
func TestExploredRightServers(t *testing.T) {
	t.Parallel()
	all := rightServers(*rightsFlag, 42)
	if *rightsFlag <= 50 { // each eighth
		all = slices.DeleteFunc(all, func(one rightServer) bool { return len(one.about)%8 > 0 && one.about != "the mock" })
	}
	all = some(all)
	var requests atomic.Int64
	virtually(t, all, func(t *testing.T, i int, one rightServer) {
		o := explored(one.start(t), *historiesFlag)
		o.Seed = uint64(i + 1)
		rep := run(t, o)
		requests.Add(int64(rep.Requests))
		if len(wrong(rep)) > 0 || rep.Summary.Pass < 40 {
			t.Errorf("%s, seed %d: got %v and %d passes, want no finding and 40 at least\n%s", one.about, o.Seed, wrong(rep), rep.Summary.Pass, text(rep))
		}
	})
	t.Logf("%d right servers, %d requests", len(all), requests.Load())
}

// exploredMutant searches the mutant with that fault and trigger.
func exploredMutant(t *testing.T, fault, trigger string, change func(o *conformance.Options)) *conformance.Report {
	all := allMutants()
	at := slices.IndexFunc(all, func(m mutant) bool { return m.fault == fault && m.trigger == trigger })
	if at < 0 {
		t.Fatalf("no mutant is %q, %s", fault, trigger)
	}
	_, url := newSample(t, choices{updates: true}, all[at].q)
	o := explored(sampleOptions(url), 100)
	o.Profile = choices{updates: true}.declare()
	change(&o)
	return run(t, o)
}

// A finding is told by the shortest sequence: two requests with both relations that it needs, and nothing else.
func TestExploreShortens(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T) {
		rep := exploredMutant(t, "another request is executed", "in chunks", func(o *conformance.Options) {
			o.Run = []string{"explore/chunked", "explore/amount", "explore/pause", "explore/connection", "explore/more-fields", "explore/others", "explore/late-20k"}
		})
		if got, want := faults(rep), []string{"explore/chunked-and-amount"}; !slices.Equal(got, want) {
			t.Fatalf("got findings %v, want %v\n%s", got, want, text(rep))
		}
		c := find(t, rep, "explore/chunked-and-amount")
		if len(c.Exchanges) > 4 || c.Odds != "failed 3/3" || c.Level != conformance.LevelSafety {
			t.Errorf("got %d exchanges, %s, level %s; want two and the looks at the end, 3/3, safety", len(c.Exchanges), c.Odds, c.Level)
		}
		for _, want := range []string{"with another number", "in chunks", "2 effects"} {
			if !strings.Contains(c.Actual+c.Effects+fmt.Sprint(c.Findings), want) {
				t.Errorf("%q does not say %q", c.Actual, want)
			}
		}
	})
}

// What shows for one key in four is a finding still, and says how often it came.
func TestExploreSometimes(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T) {
		rep := exploredMutant(t, "a repeat is executed", "for one key in four", func(*conformance.Options) {})
		c := find(t, rep, "explore/repeat")
		three := strings.HasPrefix(c.Odds, "failed 3/")
		odd := c.Verdict == conformance.VerdictInconclusive && !three && strings.HasPrefix(c.Reason, "odd: ") // the keys are fresh in each run
		if !(c.Verdict == conformance.VerdictFail && three || odd) || !strings.Contains(c.Actual, "the request, at the end: 201") {
			t.Errorf("got %s, odds %q, %q: want a failure that came three times, or the word that it is odd\n%s", c.Verdict, c.Odds, c.Actual, text(rep))
		}
	})
}

// One seed draws the same sequences, another one others.
func TestExploreSeed(t *testing.T) {
	t.Parallel()
	drawn := func(seed uint64) (counts string) {
		virtual(t, func(t *testing.T) {
			_, url := newSample(t, choices{updates: true}, quirk{})
			o := explored(sampleOptions(url), 60)
			o.Seed = seed
			for _, c := range run(t, o).Cases {
				counts += fmt.Sprintln(c.ID, c.Findings)
			}
		})
		return counts
	}
	first, again, other := drawn(3), drawn(3), drawn(4)
	if first != again || first == other {
		t.Errorf("seed 3 gives\n%s, then\n%s; seed 4\n%s", first, again, other)
	}
}

// A search for a time ends with it, whatever Timeout is, and not before.
func TestExploreFor(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T) {
		_, url := newSample(t, choices{updates: true}, quirk{})
		o := explored(sampleOptions(url), 0)
		o.For, o.Timeout, o.Parallel = 20*time.Second, 10*time.Second, 2
		begun := time.Now()
		rep := run(t, o)
		if took := time.Since(begun); took < o.For || took > o.For+o.Timeout || rep.Cut || rep.Summary.Pass < 40 {
			t.Errorf("took %v, cut %v, %d passes; want %v and a little, and most relations tried", took, rep.Cut, rep.Summary.Pass, o.For)
		}
	})
}

// measured is what was found of a mutant.
type measured struct {
	mutant
	explored []string
	requests int
	took     time.Duration
}

// Mutants drawn from the grammar are found by the search, four in five at least.
func TestExploredMutants(t *testing.T) {
	t.Parallel()
	rows := searchMutants(t, some(drawMutants(*mutantsFlag, 7)), func(o *conformance.Options) { o.Histories, o.MaxFindings = *historiesFlag, 1 })
	missed := 0
	for _, row := range rows {
		missed += oneIf(len(row.explored) == 0)
	}
	if missed*5 > len(rows) {
		t.Errorf("the search missed %d of %d mutants, want a fifth at most", missed, len(rows))
	}
}

// faults are the ids that failed or warn.
func faults(rep *conformance.Report) []string {
	var ids []string
	for _, c := range rep.Cases {
		if c.Verdict == conformance.VerdictFail || c.Verdict == conformance.VerdictWarn {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

func oneIf(holds bool) int {
	if holds {
		return 1
	}
	return 0
}
