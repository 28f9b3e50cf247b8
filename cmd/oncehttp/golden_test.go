package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

var update = flag.Bool("update", false, "write the golden files anew; read the difference before you keep it")

// golden compares text with testdata/NAME.txt.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; go test -run Golden ./cmd/oncehttp -update writes it", err)
	}
	if string(want) != text {
		t.Errorf("%s has changed; go test -run Golden ./cmd/oncehttp -update writes it anew. Got\n%s", path, text)
	}
}

// The help of every command and topic is what was read and found good.
func TestGoldenHelp(t *testing.T) {
	t.Parallel()
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		path := strings.Fields(cmd.CommandPath())[1:]
		got := run(t, append([]string{"help"}, path...)...).want(t, exitOK)
		golden(t, "help/"+strings.Join(append([]string{"oncehttp"}, path...), "-"), got.out)
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(rootCommand(streams{}))
}

// The summary of a batch in which everything goes wrong once.
func TestGoldenSummary(t *testing.T) {
	t.Parallel()
	var ta tally
	for _, l := range everyLine() {
		ta.add(&l)
	}
	ta.notTried = 3
	golden(t, "summary", ta.summary("orders.csv")+"\n"+strings.Join(ta.nextSteps("orders.csv.oncehttp.db", 1), "\n")+"\n")
}
