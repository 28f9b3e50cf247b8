package clients_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/mockserver/referee"
)

var (
	all   = flag.Bool("all", false, "judge the clients in other languages, too: minutes of real time")
	write = flag.Bool("write", false, "with -all: write the table into the page")
)

// page is where the table stands, between its two marks.
const (
	page  = "../docs/clients.md"
	begin = "<!-- table: begin -->\n"
	end   = "<!-- table: end -->\n"
)

// program is a client in another language.
type program struct {
	name  string
	setup string
	args  []string // of the command, before URL and count
	needs string   // says how to get what it needs
}

func programs() []program {
	return []program{
		{"requests with urllib3's Retry", "5 retries, factor 0.5, POST allowed", []string{python(), "requests_client.py"}, "python3 with requests"},
		{"axios-retry", "5 retries, exponential, `isRetryableError`", []string{"node", "node/axios.js"}, "node, and npm ci in node/"},
		{"got", "defaults (2 retries), POST allowed", []string{"node", "node/got.js"}, "node, and npm ci in node/"},
	}
}

// python is the first python3 that has requests.
func python() string {
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(name, "-c", "import requests").Run() == nil {
			return name
		}
	}
	return "python3"
}

// Each client breaks the rules that the table says, and no others. With -all
// -write the table is made of what was seen.
func TestClients(t *testing.T) {
	rows := map[string]string{}
	var order []string
	var mu sync.Mutex
	add := func(name, row string) {
		mu.Lock()
		defer mu.Unlock()
		rows[name] = row
	}
	t.Run("clients", func(t *testing.T) {
		for _, p := range peers() {
			order = append(order, p.name)
			t.Run(p.name, func(t *testing.T) {
				t.Parallel()
				add(p.name, row(p.name+version(t, p.module), p.setup, judgePeer(t, p)))
			})
		}
		if !*all {
			return
		}
		for _, p := range programs() {
			order = append(order, p.name)
			t.Run(p.name, func(t *testing.T) {
				t.Parallel()
				name, report := judgeProgram(t, p)
				add(p.name, row(name, p.setup, report))
			})
		}
	})
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no marks for its table", page)
	}
	if *all && *write {
		table := "| client | setup | must | should | which |\n|---|---|---|---|---|\n"
		for _, name := range order {
			table += rows[name]
		}
		if err := os.WriteFile(page, []byte(before+begin+table+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, name := range order {
		if !strings.Contains(rest, rows[name]) {
			t.Errorf("the table in %s has no line\n%s", page, rows[name])
		}
	}
}

// row is one line of the table.
func row(name, setup string, report *referee.Report) string {
	var broken []string
	must, should := 0, 0
	for _, c := range report.Cases {
		switch c.Verdict {
		case referee.Fail:
			must++
		case referee.Warn:
			should++
		default:
			continue
		}
		broken = append(broken, "`"+c.ID+"`")
	}
	slices.Sort(broken)
	return fmt.Sprintf("| %s | %s | %d | %d | %s |\n", name, setup, must, should, strings.Join(broken, ", "))
}

// version is that of a module, as go.mod requires it; "" is none.
func version(t *testing.T, module string) string {
	t.Helper()
	if module == "" {
		return ""
	}
	text, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == module {
			return " " + fields[1]
		}
	}
	t.Fatalf("go.mod does not require %s", module)
	return ""
}

// judgePeer plays the default script to a client in Go, in virtual time.
func judgePeer(t *testing.T, p peer) (report *referee.Report) {
	synctest.Test(t, func(t *testing.T) {
		script := referee.DefaultScript()
		judge := referee.New(script)
		server := mockserver.New(mockserver.Config{Referee: judge, Profile: p.profile})
		pipe := server.Pipe()
		send := p.open(t, pipe.Transport(), pipe.URL)
		for i := range script.Expect {
			send(reference(i))
		}
		select {
		case <-judge.Finished():
		case <-time.After(time.Hour):
			t.Error("the referee did not see the end")
		}
		report = judge.Report()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	show(t, report)
	return report
}

// judgeProgram plays it to a program, in real time. The name has its versions.
func judgeProgram(t *testing.T, p program) (name string, report *referee.Report) {
	script := referee.DefaultScript()
	judge := referee.New(script)
	server := mockserver.New(mockserver.Config{Referee: judge})
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	args := append(slices.Clone(p.args[1:]), server.URL(), strconv.Itoa(script.Expect))
	out, err := exec.CommandContext(t.Context(), p.args[0], args...).Output()
	if err != nil {
		t.Fatalf("%v: %v (it needs %s)", p.args, err, p.needs)
	}
	report = judge.Report() // the client has ended: nothing more comes
	show(t, report)
	name, _, _ = strings.Cut(string(out), "\n")
	return name, report
}

func show(t *testing.T, report *referee.Report) {
	for _, c := range report.Cases {
		if text := c.Actual + c.Reason; text != "" {
			t.Logf("%s %s: %s", c.Verdict, c.ID, text)
		}
	}
}

// reference names an operation, so that no name is part of another.
func reference(i int) string { return fmt.Sprintf("order-%c%d", 'a'+i, i) }
