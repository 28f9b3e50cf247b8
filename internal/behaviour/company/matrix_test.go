package company_test

import (
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/testrun"
)

// TestMain silences what Run says once where no Logger is set.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	m.Run()
}

// cells are all cells of the matrix, in an order that is always the same.
func cells() (all []*cell) {
	rows := rows()
	for r, name := range slices.Sorted(maps.Keys(rows)) {
		for s, scenario := range scenarios() {
			acts := acts()
			for a := range acts {
				for n := range 2 * len(kinds) {
					n = (n + 3*r + 5*s + a) % (2 * len(kinds))
					c := &cell{name: name, row: rows[name], scenario: scenario, act: acts[(a+s+r)%len(acts)], kind: kinds[n/2], reversed: n%2 == 1}
					if c.exception() == "" {
						all = append(all, c)
					}
				}
			}
		}
	}
	return all
}

// exception is the reason why there is no such cell; empty: there is.
func (c *cell) exception() string {
	switch {
	case c.row.without[c.act.name] != "":
		return c.row.without[c.act.name]
	case c.reversed && c.row.without[c.act.name+", the other begins"] != "":
		return c.row.without[c.act.name+", the other begins"]
	case c.act.untold && c.scenario.told:
		return "its caller knows how it ended: the same again is another order"
	case c.act.keyless && (c.scenario.name == "enqueued" || c.scenario.flying):
		return "an Enqueue names its key; and two callers without one, at the same time, are two orders"
	}
	return ""
}

// dims are what a cell is made of.
func (c *cell) dims() []string {
	direction := "one begins"
	if c.reversed {
		direction = "the other begins"
	}
	return []string{c.name + " " + direction, c.scenario.name, c.act.name, string(c.kind)}
}

// sample are cells that have each pair at least once.
func sample(all []*cell) (some []*cell) {
	seen := map[[2]string]bool{}
	for _, c := range all {
		fresh, dims := false, c.dims()
		for i := range dims {
			for k := i + 1; k < len(dims); k++ {
				pair := [2]string{dims[i], dims[k]}
				fresh = fresh || !seen[pair]
			}
		}
		if !fresh {
			continue
		}
		some = append(some, c)
		for i := range dims {
			for k := i + 1; k < len(dims); k++ {
				seen[[2]string{dims[i], dims[k]}] = true
			}
		}
	}
	return some
}

// noRows are fields without a row, with the reason.
var noRows = map[string]string{
	"Config.Journal": "it is what the two share",
	"Config.Retry":   "its fields have rows",
}

// TestEveryFieldHasARow: each exported field of Config and Policy has a row or a reason, and nothing else has.
func TestEveryFieldHasARow(t *testing.T) {
	t.Parallel()
	exist := map[string]bool{}
	for _, of := range []reflect.Type{reflect.TypeFor[oncehttp.Config](), reflect.TypeFor[oncehttp.Policy]()} {
		for i := range of.NumField() {
			if field := of.Field(i); field.IsExported() {
				exist[of.Name()+"."+field.Name] = true
			}
		}
	}
	has := map[string]bool{}
	for name := range rows() {
		for part := range strings.SplitSeq(name, " and ") {
			field, _, _ := strings.Cut(part, "/")
			if _, ofPolicy, found := strings.Cut(field, "Retry."); found {
				has["Policy."+ofPolicy] = true
			} else {
				has["Config."+field] = true
			}
		}
	}
	for name := range exist {
		if has[name] == (noRows[name] != "") {
			t.Errorf("%s has a row: %t; the reason why not is %q", name, has[name], noRows[name])
		}
	}
	for name := range has {
		if !exist[name] {
			t.Errorf("the row of %s is of nothing", name)
		}
	}
	for name := range noRows {
		if !exist[name] {
			t.Errorf("the reason for %s is of nothing", name)
		}
	}
}

// TestCompany runs the matrix: the business is not charged twice, is told nothing false, and what a client can send is sent.
func TestCompany(t *testing.T) {
	t.Parallel()
	run := cells()
	switch {
	case *onlyRow != "":
		run = slices.DeleteFunc(run, func(c *cell) bool { return !strings.HasPrefix(c.name, *onlyRow) })
	case !*whole:
		run = testrun.Some(sample(run), 8)
	}
	t.Logf("%d of %d cells", len(run), len(cells()))
	for _, c := range run {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			c.run(t)
			for _, failure := range c.failures {
				if why := c.notYet(); why != "" {
					t.Logf("not yet (%s): %s", why, failure)
				} else {
					t.Error(failure)
				}
			}
		})
	}
}

// notYet are the rows of which some cells fail, with the reason. What passes is taken out here.
var notYet = map[string]string{}

// notYet is the reason why the cell may fail; empty: it may not.
func (c *cell) notYet() string { return notYet[c.name] }
