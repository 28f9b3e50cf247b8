package explore

import (
	"time"
)

// Slices returns the searches of the regular check or, if long is set, those of the command, with larger bounds. Each is a set of clients, a server and a
// journal. It has a name, bounds for the numbers of its events, a function that sets its special facts, and the kinds of servers.
func Slices(long bool) []*Slice {
	l := list{long: long}
	one := l.bounds(Bounds{Calls: 3, Sends: 3, Crashes: 1, Fails: 1}, Bounds{Calls: 4, Sends: 4, Crashes: 2, Fails: 2})
	two := l.bounds(Bounds{Calls: 2, Sends: 1, Crashes: 1}, Bounds{Calls: 3, Sends: 2, Crashes: 1, Fails: 1})
	as := func(*Slice) {}
	shared := func(s *Slice) { s.Shared = true }
	l.add("one process", Bounds{Calls: 4, Sends: 4, Crashes: 2, Fails: 2}, as, KeepsSuccess)
	l.add("one process", one, as, KeepsErrors, KeepsNothing)
	l.add("time and a person", Bounds{Calls: 2, Sends: 2, Crashes: 1, Acts: 1, Times: 2}, as, KeepsErrors, KeepsNothing)
	l.add("a generated key", one, func(s *Slice) { s.Generated = true }, KeepsSuccess)
	l.add("asked first", one, func(s *Slice) { s.Configs[0].AskFirst = true }, KeepsAll)
	l.add("answers first", one, func(s *Slice) { s.Late = true }, KeepsSuccess)
	l.add("two processes", two, shared, KeepsSuccess, KeepsNothing)
	l.add("two processes, answers first", two, func(s *Slice) { s.Shared, s.Late = true, true }, KeepsSuccess)
	l.surroundings(one)
	l.limiters()
	l.company(two)
	l.keyless()
	return l.all
}

// surroundings adds the searches with something special about the operation, its caller, its server or its journal, such as a key handed out by the server.
// Each has a name, bounds for the numbers of its events, a function that sets the special thing, and the kinds of servers.
func (l *list) surroundings(one Bounds) {
	token := one
	token.Sends, token.Tokens, token.Times = 2, 2, 1
	l.add("a token", token, func(s *Slice) { s.Token, s.Times = true, []time.Duration{0, maxAge + time.Minute, window + time.Hour} }, KeepsSuccess)
	small := Bounds{Calls: 3, Sends: 2, Crashes: 1, Fails: 1}
	l.add("a failing Begin", small, func(s *Slice) { s.BeginFail = true }, KeepsSuccess)
	l.add("a failing Begin, shared", Bounds{Calls: 2, Sends: 1, Fails: 1}, func(s *Slice) { s.BeginFail, s.Shared = true, true }, KeepsSuccess)
	l.add("plain HTTP", Bounds{Calls: 3, Sends: 2, Crashes: 1, Fails: 1, Acts: 1}, func(s *Slice) { s.Plain = true }, KeepsSuccess, KeepsNothing)
	l.add("enqueued", Bounds{Calls: 3, Sends: 2, Crashes: 1, Acts: 1, Times: 2}, func(s *Slice) {
		s.Enqueued, s.Times = true, []time.Duration{0, maxAge + time.Minute, maxAge + window + time.Hour}
	}, KeepsSuccess)
	l.add("beside other scopes", small, func(s *Slice) { s.Scoped = true }, KeepsSuccess)
	l.add("too large to keep", small, func(s *Slice) { s.Drops = true }, KeepsAll, KeepsSuccess)
	l.add("done before", small, func(*Slice) {}, SaysDone)
	l.add("outcomes in a 200", one, func(*Slice) {}, Hides)
	l.add("outcomes in a 200, two clients, the other other facts", Bounds{Calls: 2, Sends: 1, Crashes: 1}, func(s *Slice) {
		s.Shared, s.Configs[1].OtherFacts, s.Configs[1].Profile = true, true, ProfileOf(KeepsAll)
	}, Hides)
	l.add("a key taken on the wire", small, func(s *Slice) { s.Taken = true }, KeepsSuccess)
	l.add("a key taken on the wire, two processes", Bounds{Calls: 2, Sends: 1, Crashes: 1}, func(s *Slice) { s.Taken, s.Shared = true, true }, KeepsSuccess)
	l.add("equal errors", Bounds{Calls: 1, Sends: 5}, func(s *Slice) { s.Configs[0].Limits.MaxAttempts = 6 }, KeepsSuccess)
	source := func(s *Slice) { s.Source = true }
	l.add("another credential", Bounds{Calls: 2, Sends: 3, Crashes: 1, Fails: 1}, source, KeepsSuccess, KeepsNothing)
	l.add("another credential, plain HTTP", Bounds{Calls: 2, Sends: 3, Acts: 1}, func(s *Slice) { s.Source, s.Plain = true, true }, KeepsSuccess)
	l.add("another credential, two processes", Bounds{Calls: 2, Sends: 2, Crashes: 1}, func(s *Slice) { s.Source, s.Shared = true, true }, KeepsSuccess)
	l.add("references", small, func(*Slice) {}, References)
	l.add("forgetful", Bounds{Calls: 2, Sends: 3, Crashes: 1, Acts: 1}, func(*Slice) {}, Forgets)
	l.add("acts of people", Bounds{Calls: 2, Sends: 2, Acts: 3, Crashes: 1}, func(*Slice) {}, KeepsSuccess)
	l.add("redriven", Bounds{Calls: 2, Sends: 2, Acts: 3, Crashes: 1}, func(s *Slice) { s.Redrives = true }, KeepsSuccess, KeepsAll)
	l.add("redriven, two processes", Bounds{Calls: 2, Sends: 1, Acts: 3}, func(s *Slice) { s.Redrives, s.Shared = true, true }, KeepsSuccess, KeepsAll)
	l.add("an event proves it", Bounds{Calls: 2, Sends: 2, Acts: 2, Crashes: 1, Fails: 1}, func(s *Slice) { s.Witness = true }, KeepsSuccess, KeepsNothing)
	l.add("an event proves it, answers first", Bounds{Calls: 2, Sends: 2, Acts: 2, Crashes: 1}, func(s *Slice) { s.Witness, s.Late = true, true }, KeepsAll)
	l.add("an event proves it, plain HTTP", Bounds{Calls: 2, Sends: 2, Acts: 2, Crashes: 1}, func(s *Slice) { s.Witness, s.Plain = true, true }, KeepsSuccess)
	l.add("an event proves it, two processes", Bounds{Calls: 2, Sends: 1, Acts: 1, Crashes: 1}, func(s *Slice) { s.Witness, s.Shared = true, true }, KeepsSuccess)
	l.add("an event proves it, forgetful", Bounds{Calls: 2, Sends: 2, Acts: 2}, func(s *Slice) { s.Witness = true }, Forgets)
	l.add("an event proves it, redriven", Bounds{Calls: 2, Sends: 2, Acts: 4}, func(s *Slice) { s.Witness, s.Redrives = true, true }, KeepsSuccess)
	l.add("an event proves it, rekeyed", Bounds{Calls: 2, Sends: 2, Acts: 4}, func(s *Slice) { s.Witness, s.Rekeys = true, true }, KeepsSuccess)
	l.add("an event contradicts the end of what is redriven", Bounds{Calls: 2, Sends: 2, Acts: 3}, func(s *Slice) { s.Mistaken, s.Redrives = true, true }, KeepsSuccess)
	l.add("an event contradicts the end of what is rekeyed", Bounds{Calls: 2, Sends: 1, Acts: 4}, func(s *Slice) { s.Mistaken, s.Rekeys = true, true }, KeepsSuccess)
	l.add("a skipped generation", Bounds{Calls: 3, Sends: 2, Crashes: 1, Fails: 2}, func(s *Slice) { s.Skips, s.BeginFail = true, true }, KeepsSuccess)
	two := func(s *Slice) { s.Skips, s.Shared = true, true } // the first call was made before
	l.add("a skipped generation, two processes", Bounds{Calls: 2, Sends: 2}, two, KeepsNothing)
	if l.long {
		l.add("a skipped generation, two processes", Bounds{Calls: 3, Sends: 2}, two, KeepsSuccess)
	}
	l.add("rekeyed", Bounds{Calls: 2, Sends: 2, Acts: 4}, func(s *Slice) { s.Rekeys = true }, KeepsSuccess)
}

// limiters adds the searches with rate limiters that take long. Each has a name, bounds for the numbers of its events (Limits: how often a limiter takes long),
// a function that sets its special facts, and the kinds of servers.
func (l *list) limiters() {
	slow := l.bounds(Bounds{Calls: 2, Sends: 2, Crashes: 1, Fails: 1, Limits: 1}, Bounds{Calls: 3, Sends: 2, Crashes: 1, Fails: 1, Limits: 2})
	l.add("a slow limiter", Bounds{Calls: 3, Sends: 2, Crashes: 1, Fails: 1, Limits: 1}, func(*Slice) {}, KeepsSuccess, KeepsNothing)
	l.add("a slow limiter, beside other scopes", slow, func(s *Slice) { s.Scoped = true }, KeepsSuccess)
	l.add("a slow limiter, asked first", slow, func(s *Slice) { s.Configs[0].AskFirst = true }, KeepsAll)
	l.add("slow limiters of two processes", l.bounds(Bounds{Calls: 2, Sends: 1, Limits: 1}, Bounds{Calls: 2, Sends: 2, Fails: 1, Limits: 1}), func(s *Slice) { s.Shared = true }, KeepsSuccess)
	l.add("a slow limiter, and time", Bounds{Calls: 2, Sends: 2, Acts: 1, Times: 1, Limits: 1}, func(*Slice) {}, KeepsSuccess)
	l.add("a slow limiter, and a token", Bounds{Calls: 2, Sends: 2, Tokens: 2, Crashes: 1, Times: 1, Limits: 1}, func(s *Slice) {
		s.Token, s.Times = true, []time.Duration{0, maxAge + time.Minute, window + time.Hour}
	}, KeepsSuccess)
}

// company adds searches with two clients whose Configs differ: the second one has the difference. With Times, the clock may stand at one of a few times around
// the ends of the window.
func (l *list) company(two Bounds) {
	for _, c := range []struct {
		name   string
		bounds Bounds
		change func(*Config)
	}{
		{"may not act", two, func(c *Config) { c.Lacks = true }},
		{"cannot tell", two, func(c *Config) { c.CannotTell = true }},
		{"other facts", two, func(c *Config) { c.OtherFacts, c.Profile = true, ProfileOf(KeepsAll) }},
		{"a shorter window", Bounds{Calls: 2, Sends: 1, Times: 2}, func(c *Config) { c.Window = window / 2 }},
		{"longer time limits", Bounds{Calls: 2, Sends: 1, Times: 2}, func(c *Config) { c.Limits.AttemptTimeout = 2 * time.Hour }},
		{"asks first", two, func(c *Config) { c.AskFirst = true }},
		{"stops where an origin is down", two, func(c *Config) { c.StopIfDown = true }},
	} {
		l.add("two clients, the other "+c.name, c.bounds, func(s *Slice) {
			s.Shared = true
			if c.bounds.Times > 0 {
				s.Times = []time.Duration{0, window/2 - time.Minute, window - 2*time.Hour, window + time.Hour}
			}
			c.change(&s.Configs[1])
		}, KeepsSuccess)
	}
}

// keyless adds slices with two callers that send the same request without a key, in one process and in two.
func (l *list) keyless() {
	b := l.bounds(Bounds{Calls: 3, Sends: 2, Crashes: 1}, Bounds{Calls: 3, Sends: 2, Crashes: 1, Fails: 1})
	l.add("two callers without a key", b, func(s *Slice) { s.Keyless, s.BeginFail = true, true }, KeepsSuccess)
	shared := l.bounds(Bounds{Calls: 2, Sends: 2, Crashes: 1, Fails: 1}, Bounds{Calls: 3, Sends: 2, Crashes: 1, Fails: 1})
	l.add("two callers without a key, two processes", shared, func(s *Slice) {
		s.Keyless, s.BeginFail, s.Shared = true, true, true
	}, KeepsSuccess)
}

// list collects slices.
type list struct {
	long bool
	all  []*Slice
}

// bounds returns the bounds of a search: gate for the regular check, command for the longer run of the command.
func (l *list) bounds(gate, command Bounds) Bounds {
	if l.long {
		return command
	}
	return gate
}

// add adds a search of this name for each of these kinds of servers. change sets what is special about it. Else both clients are configured alike, and the
// clock may stand at the begin, just before the end of the window, and after it.
func (l *list) add(name string, b Bounds, change func(*Slice), kinds ...ServerKind) {
	names := map[ServerKind]string{
		KeepsAll: "keeps all", KeepsSuccess: "keeps successes", KeepsErrors: "keeps errors", KeepsNothing: "keeps nothing", SaysDone: "keeps all",
		References: "takes a reference once", Hides: "hides outcomes", Forgets: "forgets",
	}
	for _, kind := range kinds {
		s := &Slice{Name: name + ", " + names[kind], Server: kind, Bounds: b, Times: []time.Duration{0, window - time.Minute, window + time.Hour}}
		p := ProfileOf(kind)
		s.Configs[0] = Config{Limits: Usual(), Profile: p, Window: window}
		s.Configs[1] = s.Configs[0]
		change(s)
		l.all = append(l.all, s)
	}
}
