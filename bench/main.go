// Command bench measures oncehttp beside its peers, in one run, on one machine:
//
//	cd bench && go run .                          # everything, under 10 minutes
//	cd bench && go run . -only layer,journal      # some sections
//	cd bench && go run . -charts ../docs/performance -doc ../docs/performance.md
//	cd bench && go run . -against DIR             # this checkout beside another, end to end
//
// It is a module of its own, so that oncehttp's does not require the peers. Every
// figure is the median of alternating rounds, with its range; ratios are taken
// within a round, so that other load on the machine falls on both sides. A missed
// target is printed as missed and does not fail the command: a timing is no test.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// options holds the values of the flags; see parse.
type options struct {
	only    string
	rounds  int
	tiny    bool
	json    string
	charts  string
	from    string
	doc     string
	dir     string
	profile string
	dsn     string
	against string
	rows    int

	capacity time.Duration
	ended    int
	rate     int
}

// section is one group of measurements. -only selects sections by name.
type section struct {
	name  string
	about string
	run   func(*bench) error
}

// sections returns all sections of the benchmark, each a group of measurements, in the order of a run.
func sections() []section {
	return []section{
		{"end-to-end", "durable operations against a server in a process of its own", runEndToEnd},
		{"latency", "what one worker waits longer, by the server's delay", runLatency},
		{"workers", "throughput by workers, for the chart", runWorkers},
		{"layer", "the HTTP layer alone: a journal in memory, a RoundTripper in memory", runLayer},
		{"journal", "the bolt journal alone, beside a raw log", runJournal},
		{"scale", "a journal of a million pending and a million finished records", runScale},
		{"waiting", "Run on a bolt journal in which a million operations wait for later", runWaiting},
		{"bodies", "a 10 MiB request", runBodies},
		{"fleet", "a backlog on PostgreSQL: Run beside River, and Do", runFleet},
		{"backlog", "a million pending records on PostgreSQL, and Run", runBacklog},
		{"capacity", "a steady rate on a sealed journal on PostgreSQL, beside ended keys", runCapacity},
		{"conformance", "how long a check of a local server takes", runConformance},
		{"batch", "the command over a whole file, beside programs that send the same rows", runBatch},
	}
}

// chosen returns the sections of this run; those of -only, or all; with -against the comparison with another checkout only.
func (o *options) chosen() []section {
	if o.against != "" {
		return []section{{"against", "this checkout beside " + o.against + ", which also runs twice: that is the noise", runAgainst}}
	}
	all := sections()
	return slices.DeleteFunc(all, func(s section) bool {
		return o.only != "" && !slices.Contains(strings.Split(o.only, ","), s.name)
	})
}

// bench is the state of a run, for every section. Its context ends with an interrupt. Sections run one after the other, and record
// their figures from one goroutine.
type bench struct {
	context.Context
	options
	out    io.Writer
	report *report
	dir    string // the folder of this run's files, removed at the end; options.dir is its parent
}

// fullOrTiny returns tiny with the flag -tiny (a short run, to see that the benchmark works), else full.
func fullOrTiny[T any](b *bench, full, tiny T) T {
	if b.tiny {
		return tiny
	}
	return full
}

// main runs the benchmark, or one role of it: sections start this program again as a server or as a worker, with the name of the role as the first
// argument.
func main() {
	if len(os.Args) > 1 {
		if role, found := roles()[os.Args[1]]; found {
			exit(role(os.Args[2:]))
		}
	}
	exit(run(os.Args[1:], os.Stdout))
}

// exit ends the process: status 1 after an error, which it prints.
func exit(err error) {
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		os.Exit(0)
	default:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// roles returns the functions of this program in a child process, by its first
// argument: servers, and measurements that need a process of their own. They get
// the further arguments.
func roles() map[string]func([]string) error {
	return map[string]func([]string) error{
		"role-serve": serveRole,
		"role-mock":  mockRole,
		"role-open":  openRole,
		"role-body":  bodyRole,
		"role-rows":  rowsRole,
	}
}

// parse reads and checks the flags. An error is one line for the user, or flag.ErrHelp. A tiny run has one round.
func parse(args []string) (options, error) {
	var o options
	names := make([]string, 0, 8)
	for _, s := range sections() {
		names = append(names, s.name)
	}
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.StringVar(&o.only, "only", "", "run these sections only, a comma between: "+strings.Join(names, ","))
	f.IntVar(&o.rounds, "rounds", 5, "alternating rounds per figure")
	f.BoolVar(&o.tiny, "tiny", false, "tiny sizes and one round, to see that it works; the figures mean nothing")
	f.StringVar(&o.json, "json", "", "write all figures to this file")
	f.StringVar(&o.charts, "charts", "", "draw the charts into this folder, as SVG")
	f.StringVar(&o.doc, "doc", "", "write the tables into this document, between its two marks")
	f.StringVar(&o.from, "from", "", "measure nothing; print, and draw, what -json wrote earlier")
	f.StringVar(&o.dir, "dir", "", "where the journals are written (default: the system's folder for temporary files)")
	f.StringVar(&o.profile, "profile", "", "write cpu, allocation and mutex profiles of Do under load into this folder")
	f.StringVar(&o.dsn, "postgres", "postgres://postgres@127.0.0.1:5432/postgres?sslmode=disable&connect_timeout=2",
		"where River may create a database of its own and drop it afterwards")
	f.StringVar(&o.against, "against", "", "compare with the checkout in this folder, end to end, in alternating processes, and measure nothing else")
	f.IntVar(&o.rows, "rows", 0, "rows of the larger file of the section batch (default 60000)")
	f.DurationVar(&o.capacity, "capacity", 0, "how long the section capacity calls, such as 1h; without it that section measures nothing")
	f.IntVar(&o.ended, "ended", 20_000_000, "ended keys in the journal of the section capacity")
	f.IntVar(&o.rate, "rate", 500, "operations a second of the section capacity")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if o.rows < 0 {
		return o, fmt.Errorf("-rows is %d; want 1 or more", o.rows)
	}
	if o.capacity < 0 || o.ended < 0 || o.rate < 1 || o.rate > 100_000 {
		return o, fmt.Errorf("-capacity is %v, -ended %d and -rate %d; want a time, 0 or more, and 1 to 100000", o.capacity, o.ended, o.rate)
	}
	if o.rounds < 1 {
		return o, fmt.Errorf("-rounds is %d; want 1 or more", o.rounds)
	}
	for name := range strings.SplitSeq(o.only, ",") {
		if o.only != "" && !slices.Contains(names, name) {
			return o, fmt.Errorf("-only: no section %q; there are %s", name, strings.Join(names, ", "))
		}
	}
	if o.against != "" && (o.only != "" || o.doc != "" || o.charts != "" || o.profile != "") {
		return o, fmt.Errorf("-against goes with -rounds, -tiny, -json and -dir only")
	}
	if o.tiny {
		o.rounds = 1
	}
	return o, nil
}

// run is the command: it measures and reports, or with -from only reports.
func run(args []string, out io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	if o.from != "" {
		rep, err := readReport(o.from)
		if err != nil {
			return err
		}
		rep.print(out)
		return errors.Join(rep.writeDoc(o.doc), drawCharts(rep, o.charts))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir, err := os.MkdirTemp(o.dir, "oncehttp-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{Context: ctx, options: o, out: out, report: newReport(&o), dir: dir}
	return errors.Join(b.measure(), b.deliver())
}

// ballastBytes is live heap like that of a larger program. Without it the
// collector runs after every 4 MiB, and a figure depends on the heap left by the
// measurement before.
const ballastBytes = 64 << 20

// measure runs and prints the chosen sections. A failed section does not stop the others; an interrupt does. It returns the errors of all. The
// ballast makes the heap as large as that of a real program, so that the garbage collector runs as rarely as there.
func (b *bench) measure() error {
	ballast := make([]byte, ballastBytes) // never touched, so it takes no memory
	defer runtime.KeepAlive(ballast)
	fmt.Fprintln(b.out, b.report.headline())
	var failed []error
	for _, s := range b.chosen() {
		began := time.Now()
		b.report.begin(s)
		err := s.run(b)
		if b.Err() != nil {
			return b.Err()
		}
		if err != nil {
			b.note("failed: %v", err)
			failed = append(failed, fmt.Errorf("%s: %w", s.name, err))
		}
		b.report.end(time.Since(began))
		b.report.printSection(b.out, b.report.last())
	}
	return errors.Join(failed...)
}

// deliver prints the targets, and writes the files of -json, -doc and -charts.
func (b *bench) deliver() error {
	b.report.printTargets(b.out)
	if b.json != "" {
		if err := b.report.write(b.json); err != nil {
			return err
		}
	}
	return errors.Join(b.report.writeDoc(b.doc), drawCharts(b.report, b.charts))
}
