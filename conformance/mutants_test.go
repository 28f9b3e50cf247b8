package conformance_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// mutant is a sample with a fault that shows only when its trigger is met.
type mutant struct {
	fault, trigger string
	q              quirk
}

func (m mutant) String() string { return m.fault + ", " + m.trigger }

// trigger says when a fault shows: for a request, and the entry of its key where there is one.
type trigger struct {
	name string
	met  func(c *call, e *entry) bool
	// alone reports whether the request alone decides, so that it can be asked before the key is looked up.
	alone bool
}

// triggers lists them all, the simplest first.
func triggers() []trigger {
	header := func(name string) func(*call, *entry) bool {
		return func(c *call, _ *entry) bool { return c.r.Header.Get(name) != "" }
	}
	crowd := func(n int) func(*call, *entry) bool {
		return func(c *call, e *entry) bool { return c.bornSince(e) >= n }
	}
	return []trigger{
		{"always", func(*call, *entry) bool { return true }, true},
		{"in chunks", func(c *call, _ *entry) bool { return len(c.r.TransferEncoding) > 0 }, true},
		{"with Traceparent", header("Traceparent"), true},
		{"with Expect", header("Expect"), true},
		{"beyond 4 KiB", func(c *call, _ *entry) bool { return len(c.body) > 4<<10 }, true},
		{"beyond 50 KiB", func(c *call, _ *entry) bool { return len(c.body) > 50<<10 }, true},
		{"for one key in four", func(c *call, _ *entry) bool { return strings.ContainsAny(c.key.key[:1], "0123") }, true},
		{"from the third repeat on", func(c *call, e *entry) bool { return c.seen(e, "repeat") >= 3 }, false},
		{"after a second", func(_ *call, e *entry) bool { return time.Since(e.born) > time.Second }, false},
		{"after 5 other keys", crowd(5), false}, {"after 60 other keys", crowd(60), false},
		{"after a refusal under the key", func(c *call, e *entry) bool { return c.seen(e, "refused") > 0 }, false},
		{"after a duplicate in flight", func(c *call, e *entry) bool { return c.seen(e, "pending") > 0 }, false},
	}
}

// seen is how often something was noted of an entry.
func (c *call) seen(e *entry, what string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, _ := c.notes[what+e.print].(int)
	return n
}

// note notes something of an entry.
func (c *call) note(e *entry, what string) {
	n := c.seen(e, what)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notes[what+e.print] = n + 1
}

// bornSince counts the keys that came after an entry's.
func (s *sample) bornSince(e *entry) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, other := range s.entries {
		if other.born.After(e.born) {
			n++
		}
	}
	return n
}

// allMutants is every fault with every trigger that it can have.
func allMutants() []mutant {
	var all []mutant
	for _, when := range triggers() {
		all = append(all, repeatMutants(when)...)
		all = append(all, otherMutants(when)...)
		if when.alone {
			all = append(all, coverMutants(when)...)
			all = append(all, keyMutants(when)...)
		}
	}
	return append(all, leftMutants()...)
}

// noting lets the triggers know what came before.
func noting(q quirk) quirk {
	note := func(what string, h func(*call, *entry) (reply, bool)) func(*call, *entry) (reply, bool) {
		return func(c *call, e *entry) (reply, bool) {
			c.note(e, what)
			if h == nil {
				return reply{}, false
			}
			return h(c, e)
		}
	}
	q.repeat, q.pending, q.other = note("repeat", q.repeat), note("pending", q.pending), note("refused", q.other)
	return q
}

// repeatMutants answer a repeat, or a duplicate in flight, wrongly.
func repeatMutants(when trigger) []mutant {
	type answer = func(c *call, e *entry) reply
	executes := func(c *call, _ *entry) reply { return c.execute() }
	var all []mutant
	for _, f := range []struct {
		fault   string
		give    answer
		pending bool
	}{
		{"a repeat is executed", executes, false},
		{"a repeat is refused", func(c *call, _ *entry) reply { return c.refusal(http.StatusBadRequest, "again", "was here before") }, false},
		{"a repeat is in progress for ever", func(c *call, _ *entry) reply { return c.refusal(http.StatusConflict, "busy", "in progress") }, false},
		{"a repeat is answered with a new name", func(c *call, e *entry) reply {
			a := *e.reply
			a.header = map[string]string{"Content-Type": "application/json", "Location": "/payments/new"}
			a.body = fmt.Sprintf(`{"id":"n%d","reference":%q}`, c.seen(e, "repeat")+int(time.Now().UnixNano()%1e9), c.ref)
			return a
		}, false},
		{"a duplicate in flight is executed", executes, true},
	} {
		hook := func(c *call, e *entry) (reply, bool) {
			if !when.met(c, e) {
				return reply{}, false
			}
			return f.give(c, e), true
		}
		m := mutant{fault: f.fault, trigger: when.name, q: quirk{repeat: hook}}
		if f.pending {
			m.q = quirk{pending: hook}
		}
		m.q = noting(m.q)
		all = append(all, m)
	}
	return all
}

// otherMutants answer another request under the key wrongly.
func otherMutants(when trigger) []mutant {
	var all []mutant
	for _, f := range []struct {
		fault string
		give  func(c *call, e *entry) (reply, bool)
	}{
		{"another request is executed", func(c *call, _ *entry) (reply, bool) { return c.execute(), true }},
		{"another request is confirmed", func(c *call, e *entry) (reply, bool) {
			c.mu.Lock()
			defer c.mu.Unlock()
			if e.reply == nil {
				return reply{}, false
			}
			return *e.reply, true
		}},
		{"another request is refused once it was executed", func(c *call, _ *entry) (reply, bool) { c.effect(); return reply{}, false }},
		{"another request frees the key", func(c *call, e *entry) (reply, bool) {
			c.mu.Lock()
			defer c.mu.Unlock()
			for id, had := range c.entries {
				if had == e && e.reply != nil {
					delete(c.entries, id)
				}
			}
			return reply{}, false
		}},
	} {
		m := mutant{fault: f.fault, trigger: when.name}
		m.q = noting(quirk{other: func(c *call, e *entry) (reply, bool) {
			if !when.met(c, e) {
				return reply{}, false
			}
			return f.give(c, e)
		}})
		all = append(all, m)
	}
	return all
}

// coverMutants compare too little of a request.
func coverMutants(when trigger) []mutant {
	var all []mutant
	for _, f := range []struct {
		fault string
		blind func(parts []string) []string
	}{
		{"the body is not compared", func(parts []string) []string { return parts[:3] }},
		{"the path is not compared", func(parts []string) []string { return append(parts[:1:1], parts[2:]...) }},
		{"the body is compared by its length", bodyAs(func(body string) string { return strconv.Itoa(len(body)) })},
		{"the first 1 KiB are compared", bodyAs(func(body string) string { return body[:min(len(body), 1<<10)] })},
		{"the first 30 KiB are compared", bodyAs(func(body string) string { return body[:min(len(body), 30<<10)] })},
		{"objects in objects are not compared", bodyAs(valuesAs(func(depth int, value any) any { return without[map[string]any](depth, 1, value) }))},
		{"nothing below three objects is compared", bodyAs(valuesAs(func(depth int, value any) any { return without[map[string]any](depth, 3, value) }))},
		{"lists are not compared", bodyAs(valuesAs(func(depth int, value any) any { return without[[]any](depth, 0, value) }))},
		{"lists are compared by their length", bodyAs(valuesAs(func(_ int, value any) any {
			if list, isList := value.([]any); isList {
				return len(list)
			}
			return value
		}))},
		{"numbers are not compared", bodyAs(valuesAs(func(depth int, value any) any { return without[json.Number](depth, 0, value) }))},
		{"fractions are cut off", bodyAs(valuesAs(func(_ int, value any) any {
			if number, isNumber := value.(json.Number); isNumber {
				whole, _, _ := strings.Cut(number.String(), ".")
				return json.Number(whole)
			}
			return value
		}))},
		{"signs are not compared", bodyAs(func(body string) string { return strings.ReplaceAll(body, ":-", ":") })},
		{"flags are not compared", bodyAs(valuesAs(func(depth int, value any) any { return without[bool](depth, 0, value) }))},
		{"texts are compared without regard to case", bodyAs(strings.ToLower)},
		{"0 and null are one", bodyAs(func(body string) string { return strings.ReplaceAll(body, ":null", ":0") })},
		{"numbers and texts are one", bodyAs(func(body string) string { return strings.ReplaceAll(body, `"`, "") })},
	} {
		all = append(all, mutant{fault: f.fault, trigger: when.name, q: quirk{covers: func(c *call, parts []string) []string {
			if !when.met(c, nil) {
				return parts
			}
			return f.blind(parts)
		}}})
	}
	return all
}

// bodyAs compares what change makes of a body.
func bodyAs(change func(body string) string) func([]string) []string {
	return func(parts []string) []string { return append(parts[:3:3], change(parts[3])) }
}

// valuesAs compares what change makes of each value in a JSON body.
func valuesAs(change func(depth int, value any) any) func(string) string {
	return func(body string) string {
		decoder := json.NewDecoder(bytes.NewReader([]byte(body)))
		decoder.UseNumber()
		var value any
		if decoder.Decode(&value) != nil {
			return body
		}
		text, err := json.Marshal(changedValue(0, value, change))
		if err != nil {
			return body
		}
		return string(text)
	}
}

// changedValue returns a JSON value with each part replaced by what change makes of it, the outer ones first.
func changedValue(depth int, value any, change func(int, any) any) any {
	value = change(depth, value)
	switch node := value.(type) {
	case map[string]any:
		for name, member := range node {
			node[name] = changedValue(depth+1, member, change)
		}
	case []any:
		for i, element := range node {
			node[i] = changedValue(depth+1, element, change)
		}
	}
	return value
}

// without returns nil in place of a value of type T at that depth or deeper.
func without[T any](depth, from int, value any) any {
	if _, of := value.(T); of && depth >= from {
		return nil
	}
	return value
}

// keyMutants take different keys for one, or a key of two callers.
func keyMutants(when trigger) []mutant {
	var all []mutant
	for _, f := range []struct {
		fault string
		scope func(c *call, parts []string) []string
	}{
		{"keys are compared without regard to case", func(_ *call, parts []string) []string { return []string{parts[0], strings.ToLower(parts[1])} }},
		{"the first 36 bytes of keys are compared", func(_ *call, parts []string) []string { return []string{parts[0], parts[1][:min(len(parts[1]), 36)]} }},
		{"the first 128 bytes of keys are compared", func(_ *call, parts []string) []string { return []string{parts[0], parts[1][:min(len(parts[1]), 128)]} }},
		{"the caller is not compared", func(_ *call, parts []string) []string { return parts[1:] }},
		{"the body is a part of the key", func(c *call, parts []string) []string { return append(parts, string(c.body)) }},
	} {
		all = append(all, mutant{fault: f.fault, trigger: when.name, q: quirk{scope: func(c *call, parts []string) []string {
			if !when.met(c, nil) {
				return parts
			}
			return f.scope(c, parts)
		}}})
	}
	return all
}

// leftMutants settle a key wrongly whose client has left.
func leftMutants() []mutant {
	left := func(c *call) bool { return c.r.Context().Err() != nil }
	return []mutant{
		{"the key is freed", "when the client has left", quirk{keep: func(c *call, r reply) *reply {
			if left(c) || r.status >= 400 {
				return nil
			}
			return &r
		}}},
		{"the key stays locked", "when the client has left", quirk{stuck: func(c *call, _ reply) bool { return left(c) }}},
		{"the key stays locked", "after a failure", quirk{stuck: func(_ *call, r reply) bool { return r.status >= 400 }}},
		{"the key is freed before the work", "always", quirk{run: func(c *call) reply {
			id, _ := c.names()
			c.mu.Lock()
			e := c.entries[id]
			delete(c.entries, id)
			c.mu.Unlock()
			a := c.serve()
			c.mu.Lock()
			defer c.mu.Unlock()
			if e != nil {
				c.entries[id] = e
			}
			return a
		}}},
	}
}

// drawMutants draws n of all mutants.
func drawMutants(n int, seed uint64) []mutant {
	all := allMutants()
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:min(n, len(all))]
}
