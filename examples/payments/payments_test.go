package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/oncehttptest"
)

// asProgram makes the test binary be the program, which starts itself again.
const asProgram = "PAYMENTS_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// The program ends well, its figures are the ledger's, and it leaves no file.
func TestProgram(t *testing.T) {
	t.Parallel()
	temp := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), asProgram+"=1", "TMPDIR="+temp, "TMP="+temp, "TEMP="+temp)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, &out, &errs)
	}
	for _, want := range []string{
		`so far the server saw \d+ sends and charged \d{3} orders`,
		`finished: \d+ answers from the server, \d+ repeated by the server, [1-9]\d+ from the journal`,
		`finished: 0 answers from the server, 0 repeated by the server, 200 from the journal\n  it sent 0 requests`,
		`200 orders, [34]\d\d sends, 200 effects, 0 duplicates, 0 losses\nevery order took effect exactly once\n$`,
	} {
		if !regexp.MustCompile(want).Match(out.Bytes()) {
			t.Errorf("want %q in\n%s", want, &out)
		}
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// An order is charged once: its answer is lost, the next process dies while it waits for one, and the third one charges it
// again.
func TestChargeOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kit, o := oncehttptest.New(t, oncehttptest.Config{}), order{User: "u1", Order: "o1", Amount: 4200, Currency: "EUR"}
		kit.LoseAnswer()
		kit.Next(mockserver.Fault{Kind: mockserver.HangAfter})
		go func() { _, _ = chargeOne(kit.Client(), kit.URL, o) }()
		kit.Pass(policy().MaxDelay * 10) // it waits for its second answer
		source, err := chargeOne(kit.Crash(), kit.URL, o)
		if err != nil || source != oncehttp.SourceReplay || kit.Sends(keyOf(o)) != 3 || kit.Effects(keyOf(o)) != 1 {
			t.Errorf("from the %v, %v; %d sends, %d effects", source, err, kit.Sends(keyOf(o)), kit.Effects(keyOf(o)))
		}
		if source, err := chargeOne(kit.Client(), kit.URL, o); err != nil || source != oncehttp.SourceJournal {
			t.Errorf("again: from the %v, %v", source, err)
		}
	})
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	orders := []order{{User: "u1", Order: "o1"}, {User: "u1", Order: "o2"}}
	one, two := string(keyOf(orders[0])), string(keyOf(orders[1]))
	for name, c := range map[string]struct {
		effects map[string]int
		want    string // "" is a good end
	}{
		"once each":     {map[string]int{one: 1, two: 1}, ""},
		"one is lost":   {map[string]int{one: 1}, "0 duplicates, 1 losses"},
		"one is double": {map[string]int{one: 2, two: 1}, "1 duplicates, 0 losses"},
		"one of each":   {map[string]int{one: 2}, "1 duplicates, 1 losses"},
		"a new key":     {map[string]int{one: 1, two: 1, "other": 1}, "1 duplicates, 0 losses"},
	} {
		ledger := mockserver.Snapshot{Keys: map[string]mockserver.Count{}}
		for key, n := range c.effects {
			ledger.Keys[key] = mockserver.Count{Effects: n}
			ledger.Effects += n
		}
		var out bytes.Buffer
		err := verdict(&out, orders, ledger)
		if (err == nil) != (c.want == "") || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: %v\n%s", name, err, &out)
		}
	}
}

func TestReadOrders(t *testing.T) {
	t.Parallel()
	orders, err := readOrders(ordersCSV)
	if err != nil || len(orders) != 200 {
		t.Fatalf("%d orders, %v; want 200", len(orders), err)
	}
	seen := map[string]bool{}
	for _, o := range orders {
		if key := string(keyOf(o)); key == "" || seen[key] || o.Amount <= 0 {
			t.Errorf("%+v has the key %q, seen before: %v", o, key, seen[key])
		} else {
			seen[key] = true
		}
	}
	for _, text := range []string{"user,order,amount,currency\nu1,o1,ten,EUR\n", "user,order\nu1\n", "\"\n", "user,order\nu1,o1\n"} {
		if _, err := readOrders(text); err == nil {
			t.Errorf("no error for %q", text)
		}
	}
}

// A run that is not killed half-way proves nothing, and is no success.
func TestPlayNeedsTheKill(t *testing.T) {
	t.Parallel()
	server := mockserver.New(mockserver.Config{})
	defer server.Close()
	if _, err := play(io.Discard, make([]order, 2), server.Ledger(), func(int) error { return nil }); err == nil {
		t.Error("play is content without a kill")
	}
}
