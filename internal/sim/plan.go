package sim

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/profile"
)

// Plan is one run, as the seed fixes it.
type Plan struct {
	Seed    uint64  // everything is drawn from it
	Setting Setting // holds for the whole run
	// Steps happen at their times, each in a goroutine of its own.
	Steps []Step
}

// Setting holds the conditions of a whole run.
type Setting struct {
	// Bolt: the journal is persist/bolt in a real file. Else it is
	// persist/memory under a layer with a model of durability.
	Bolt bool
	// Processes run at the same time. More than one share the journal, with
	// leases.
	Processes int
	// Accounts have a client each in every process, and the same keys.
	Accounts int
	// Customers is the way to tell those accounts apart.
	Customers customers
	// Profile of the mock server, and of the clients.
	Profile *profile.Profile
	// Storm is the share of sends with a fault.
	Storm float64
	// Disk is the share of failing journal writes.
	Disk float64
	// Clocks: processes come back with wrong clocks.
	Clocks     bool
	Reuse      bool            // callers send one *http.Request value again
	RandomKeys bool            // Config.NewKey is not set
	FixedKeys  bool            // Config.NewKey gives one request one key, always
	Authorize  bool            // credentials come from Config.Authorize
	Reconcile  bool            // held operations are settled by Config.Reconcile
	Retry      oncehttp.Policy // Config.Retry
	KeepBytes  int64           // Config.MaxResponseBytes
	KeepAnswer time.Duration   // Config.KeepAnswer
	Roam       bool            // callers speak to any process, as behind a load balancer
	Upgrades   bool            // every other life of a process has another profile of the same name
	Pairs      bool            // each account has two clients in every process
	Finds      bool            // the API finds objects by a reference of the business
	Changes    Changes         // the differences between the lives' configurations
	Far        time.Duration   // the longest way to the journal and back, if this is a server
	Pages      float64         // share of sends answered by something in front of the API: see front.go
	Zip        bool            // some callers take gzip
	LargeNo    bool            // the server's refusals are long
	PostOnly   bool            // the API honours keys on POST only, as its profile says, and some requests have another method
	Guests     bool            // functions of the Config call the client: see guests.go
	Late       bool            // callers are told answers before the shared journal has them: see late.go
	Claims     float64         // share of the claims with a death of the process soon after
	Workers    int             // Config.ResumeWorkers
	Orders     int             // number of orders
	Span       time.Duration   // the time of all steps
	ServerHold time.Duration   // the server's memory of a key
}

// StepKind is the kind of a step.
type StepKind uint8

// The kinds of steps.
const (
	StepOrder    StepKind = iota // a caller wants something: see caller.go
	StepPass                     // Client.Resume, sometimes broken off
	StepRun                      // Client.Run for a while
	StepKill                     // a process dies a few calls later
	StepPower                    // all processes die, and the disk may lose changes not yet synced
	StepOperator                 // an operator settles or abandons an operation
	StepSweep                    // Client.Sweep
	StepLook                     // Client.Unfinished and Client.Lookup
	StepStranger                 // another system uses one of our keys at the server
	stepKinds
)

// String returns the kind of a step of the plan in a word, for a failure's history.
func (k StepKind) String() string {
	names := [stepKinds]string{"order", "pass", "run", "kill", "power", "operator", "sweep", "look", "stranger"}
	return names[k]
}

// Step is one event. Its details are drawn from its own number, so
// they stay when other steps are dropped.
type Step struct {
	ID   int           // unique in its plan
	Kind StepKind      // what happens
	At   time.Duration // since the start
}

// String is the step in one line.
func (s Step) String() string { return fmt.Sprintf("#%d %v at %v", s.ID, s.Kind, s.At) }

// NewPlan returns the plan of a simulated run, drawn from a seed: its setting, and its steps in time, among them orders callers' orders (fewer if the
// journal is a bolt file, which is slower).
func NewPlan(seed uint64, orders int) Plan {
	r := dice(seed).of("plan", 0)
	p := Plan{Seed: seed, Setting: newSetting(seed, r)}
	s := &p.Setting
	s.Span = time.Duration(orders) * pick(r, time.Second, 3*time.Second, 10*time.Second)
	if s.Bolt {
		orders = max(orders/4, 1) // real files are slow
		s.Span /= 4
	}
	s.Orders = orders
	add := func(kind StepKind, n int) {
		for range n {
			p.Steps = append(p.Steps, Step{ID: len(p.Steps), Kind: kind, At: upTo(r, s.Span)})
		}
	}
	add(StepOrder, orders)
	add(StepPass, orders/10+r.IntN(3))
	add(StepRun, r.IntN(4))
	add(StepKill, r.IntN(orders/20+2))
	add(StepPower, r.IntN(orders/60+2))
	add(StepOperator, orders/15+r.IntN(2))
	add(StepSweep, r.IntN(6))
	add(StepLook, r.IntN(4))
	add(StepStranger, r.IntN(orders/10+2))
	if s.Claims > 0 { // Run claims and marks
		add(StepRun, orders/15)
	}
	slices.SortStableFunc(p.Steps, func(a, b Step) int { return int(a.At - b.At) })
	return p
}

// storesErrors returns the default profile with the fact that the server stores its errors, as the simulated one does.
func storesErrors() *profile.Profile {
	p := profile.Draft07()
	p.Stored.Client = p.KeptErrors()
	return p
}

// newSetting draws the setting of a run. Properties added later are drawn from dice of their own, so that old seeds still
// draw the same values for the others.
func newSetting(seed uint64, r *rand.Rand) Setting {
	s := Setting{
		Bolt: seed%10 == 0, Processes: 1, Accounts: 1 + r.IntN(2), Profile: storesErrors(),
		Storm: pick(r, 0, 0.1, 0.3, 0.6), Clocks: r.IntN(3) == 0, Disk: pick(r, 0, 0, 0.01, 0.04),
		FixedKeys: r.IntN(4) == 0, Reuse: r.IntN(2) == 0, Authorize: r.IntN(3) > 0, Reconcile: r.IntN(3) == 0,
		KeepBytes: pick[int64](r, 0, 0, 300), Workers: 1 + r.IntN(3),
		Retry: oncehttp.Policy{
			MaxAttempts: 1 + r.IntN(5), AttemptTimeout: pick(r, 5*time.Second, 15*time.Second),
			MinDelay: 100 * time.Millisecond, MaxDelay: pick(r, time.Second, 10*time.Second),
		},
	}
	s.KeepAnswer, s.Pairs = 72*time.Hour, r.IntN(3) == 0
	s.RandomKeys = !s.FixedKeys && r.IntN(3) == 0
	s.Upgrades, s.Roam = r.IntN(4) == 0, r.IntN(2) == 0
	if !s.Clocks && r.IntN(4) == 0 { // while clocks agree, a sweep by one is a sweep by all
		s.KeepAnswer = 5 * time.Minute
	}
	if !s.Authorize {
		s.Accounts = 1 // nothing tells the server of two
	}
	if s.Bolt {
		s.Disk = 0 // faults of files have tests of their own, beside persist/bolt
	}
	if !s.Bolt && r.IntN(3) == 0 {
		s.Processes = 2 + r.IntN(2)
	}
	if r.IntN(3) == 0 {
		s.Profile = profile.StripeV1()
		s.Profile.Body = profile.BodyRule{} // the callers send JSON
	}
	if r.IntN(4) == 0 { // so short as to end before some operations do
		s.Profile.Window.Floor = 10 * time.Minute
	}
	if s.Processes > 1 {
		s.Upgrades = false // a process does not see operations begun by another under another recipe: not closed yet
	}
	s.Late = s.Processes > 1 && dice(seed).of("late", 0).IntN(2) == 0 // with dice of its own: so all else stays as drawn without it
	if s.Processes > 1 {
		s.Far = pick(dice(seed).of("far", 0), 0, 0, 200*time.Millisecond)
		s.Claims = pick(dice(seed).of("claims", 0), 0, 0.1, 0.3)
	}
	s.customers(dice(seed).of("customers", 0))
	s.answers(dice(seed).of("answers", 0))
	s.api(dice(seed).of("api", 0))
	s.changes(dice(seed).of("changes", 0))
	s.company(dice(seed).of("company", 0))
	s.Guests = dice(seed).of("guests", 0).IntN(3) == 0
	if s.Finds = dice(seed).of("finds", 0).IntN(2) == 0; s.Finds {
		s.Profile.Reference = reference()
	}
	s.ServerHold = s.Profile.Window.Floor + clockMax + lateMax
	return s
}

// answers draws how often a proxy answers in place of the API, and whether it compresses answers.
func (s *Setting) answers(r *rand.Rand) {
	s.Pages, s.Zip = pick(r, 0, 0, 0.05, 0.2), r.IntN(3) == 0
}

// api draws the properties of the simulated API for this run.
func (s *Setting) api(r *rand.Rand) {
	s.LargeNo = r.IntN(2) == 0
	if s.PostOnly = r.IntN(3) == 0; s.PostOnly && s.Profile.Name != "stripe" { // Stripe's profile is one already
		s.Profile.Name, s.Profile.Methods = "post-only", []string{http.MethodPost}
	}
}

// honours reports whether a key counts in requests with a method.
func (s *Setting) honours(method string) bool { return slices.Contains(s.Profile.Methods, method) }

// String returns the main facts of a plan, for a failing seed.
func (p Plan) String() string {
	s := &p.Setting
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: bolt %t, %d processes, %d accounts (%v), profile %s with a window of %v, storm %v, disk %v, clocks %t\n",
		p.Seed, s.Bolt, s.Processes, s.Accounts, s.Customers, s.Profile.Name, s.Profile.Window.Floor, s.Storm, s.Disk, s.Clocks)
	fmt.Fprintf(&b, "answers kept for %v, pairs %t, upgrades %t, roam %t, late %t, far %v, deaths after %v of the claims, finds %t, changes %+v, pages %v, gzip %t, large refusals %t, keys on POST only %t, guests %t, ",
		s.KeepAnswer, s.Pairs, s.Upgrades, s.Roam, s.Late, s.Far, s.Claims, s.Finds, s.Changes, s.Pages, s.Zip, s.LargeNo, s.PostOnly, s.Guests)
	fmt.Fprintf(&b, "random keys %t, fixed keys %t, authorize %t, reconcile %t, keep %d bytes, %d workers, %d attempts of %v\n",
		s.RandomKeys, s.FixedKeys, s.Authorize, s.Reconcile, s.KeepBytes, s.Workers, s.Retry.MaxAttempts, s.Retry.AttemptTimeout)
	for _, step := range p.Steps {
		fmt.Fprintf(&b, "  %v\n", step)
	}
	return b.String()
}
