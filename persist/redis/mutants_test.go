package redis_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/persisttest"
	"github.com/oncehttp/oncehttp/persist/redis"
)

// TestMutants edits a script, and expects that the suite finds it, in a case of that name.
func TestMutants(t *testing.T) {
	t.Parallel()
	at := start(t).url() // it keeps nothing, and is quick
	mutants := map[string]struct{ script, old, new, found string }{
		"Begin writes over what is there":           {"begin", "if standing then", "if false then", "begin/existing"},
		"Begin takes what is there for its own":     {"begin", "standing.token == token and", "", "begin/one-creates"},
		"numbers of the bucket alone":               {"begin", "math.max(now[1] * 1000000 + now[2], (redis.call('GET', clock) or 0) + 1, seen + 1)", "(redis.call('GET', clock) or 0) + 1", "begin/creates"},
		"no body":                                   {"begin", "if body ~= ''", "if false", "begin/any-bytes"},
		"Update at any revision":                    {"change", "or standing.revision ~= tonumber(revision)", "", "update/stale"},
		"Update of what was forgotten meanwhile":    {"change", "standing.seq ~= tonumber(seq) or", "", "forget/begun-anew"},
		"Update of what is final":                   {"change", "or standing.state >= 2", "", "finish/final"},
		"Update of another request":                 {"change", "if standing.created ~= r.created or standing.fingerprint ~= r.fingerprint then", "if false then", "update/frozen"},
		"the answer is not kept":                    {"change", "keep('a', id, answer)", "", "finish/visible"},
		"Forget at any revision":                    {"forget", "or standing.revision ~= tonumber(revision) or standing.state >= 2", "", "forget/stale"},
		"Forget of what was forgotten meanwhile":    {"forget", "standing.seq ~= tonumber(seq) or", "", "forget/begun-anew"},
		"Forget leaves it":                          {"forget", "remove(standing)", "", "forget/removes"},
		"held records are not listed":               {"prelude", "list(unfinished, open,", "list(unfinished, r.state == 0,", "query/states"},
		"unreported records are not found":          {"prelude", "list(fingerprints, open or not told", "list(fingerprints, open", "report/marks"},
		"no unreported record among all":            {"prelude", "list(unresolved, open or not told", "list(unresolved, open", "report/marks"},
		"MarkReported does nothing":                 {"report", "r.flags = r.flags - unreportedFlag", "", "report/marks"},
		"a reported tombstone is never swept":       {"report", "redis.call('ZADD', unreported, 0, id)", "", "report/sweep"},
		"tombstones are lost to the next sweep":     {"prelude", "list(tombstones, swept and not mine, ended, r.id)", "", "sweep/keep-key"},
		"answers are kept beyond their window":      {"prelude", "list(expiring, not swept, over, r.id)", "list(expiring, not swept, '+inf', r.id)", "sweep/window"},
		"a claim does not fence":                    {"claim", "r.revision = revision + 1", "", "claim/fence"},
		"Claim passes leased records over for ever": {"prelude", "r.leaseUntil * 1000000 + math.floor(r.leaseNano / 1000)", "9e15", "claim/leased"},
		"DueTimes names what is leased":             {"turns", "leased and lasts(r, now, nowNano)", "false", "claim/origins"},
		"DueTimes does not say when":                {"turns", "whole(r.next)", "'0'", "claim/origins"},
		"Renew of another's lease":                  {"renew", "and r.owner == owner", "", "claim/renew"},
		"Renew of what is final":                    {"renew", "and r.state == 0", "", "claim/renew"},
		"Renew does nothing":                        {"renew", "lease(r, owner, till, tillNano)", "", "claim/renew"},
		"two postpone one result":                   {"owe", "or standing.revision ~= tonumber(revision)", "", "results/postpone together"},
		"what is owed is not found":                 {"prelude", "list(owed, has(r, owedFlag), r.seq, r.id)", "", "results/marks"},
		"what was held is counted for ever":         {"prelude", "add(before, -1)", "", "count/follows"},
		"the oldest has ended":                      {"prelude", "list(ages, r.state < 2", "list(ages, true", "count/ends"},
		"a record leaves no number when it goes":    {"prelude", "tally({ id = r.id, state = 2, created = r.created })", "", "count/assigned"},
		"another reason than that of the hold":      {"change", "needs, reason)", "needs, 'unclear')", "count/follows"},
		"a delivered record is never swept":         {"owe", "place(r, ended, over, '')", "", "results/sweep"},
		"a sweep leaves the body of the request":    {"sweep", "redis.call('HDEL', records, 'b' .. id, 'a' .. id)", "", "sweep/large"},
		"a sweep that counts what it has not done":  {"sweep", "changed = changed + 1", "changed = changed + 2", "sweep/max"},
	}
	for _, name := range testrun.Some(slices.Sorted(maps.Keys(mutants)), 4) {
		m := mutants[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failures, err := persisttest.Check(persisttest.Harness{
				Durable: true, Patience: 20 * time.Second, Cases: []string{m.found},
				New: func(string) (func() (persist.Journal, error), error) {
					opts := own(t, at)
					opts.AllowVolatile = true
					return func() (persist.Journal, error) {
						return redis.OpenEdited(context.Background(), at, opts, m.script, m.old, m.new)
					}, nil
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := failures[m.found]; err == nil || strings.Contains(err.Error(), "user_script") {
				t.Errorf("%s: %v; want it to fail, and not because the script cannot run", m.found, err)
			}
		})
	}
}
