package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/profile"
)

// mockFlags are the flags of mock, as given.
type mockFlags struct {
	addr    string
	faults  string
	seed    uint64
	window  time.Duration
	profile string
	bug     string
	pointer string
	require bool
}

func mockCommand(s streams) *cobra.Command {
	f := &mockFlags{}
	cmd := &cobra.Command{
		Use:   "mock",
		Short: "Serve a payment API that honours keys, breaks on demand, and counts effects",
		Long: `Serve, until Ctrl-C, a payment API that honours idempotency keys as a profile
says, breaks on demand, and keeps a ledger of what really took effect. The first
line on stdout is "listening on URL".

POST /payments takes any JSON object and answers 201 with an id; GET /_ledger
shows sends and effects by key, and violations of the rules for clients;
POST /_reset clears everything. It is for tests: it listens on 127.0.0.1 unless
told, authenticates nobody, and keeps everything in memory.

--faults is a list of NAME[:ARGUMENT]=PROBABILITY: drop-before, drop-after,
reset, reset-after, hang, hang-after, slow-body, cut-body, redirect, huge-error,
expire, kill-idle, or a status such as 503 or 429:2 (with Retry-After).

Exit status: 0 ended by Ctrl-C; 2 the call is wrong, or it cannot listen.`,
		Example: `  oncehttp mock --faults 'drop-after=0.2,reset=0.05,503=0.1' --seed 7
  oncehttp mock --addr 127.0.0.1:8080 --profile stripe --window 1h`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), s) },
	}
	fs := cmd.Flags()
	fs.StringVar(&f.addr, "addr", "127.0.0.1:0", "HOST:PORT to listen on; port 0 takes a free one")
	fs.StringVar(&f.faults, "faults", "", "what breaks, and how often")
	fs.Uint64Var(&f.seed, "seed", 0, "decides which send meets which fault")
	fs.DurationVar(&f.window, "window", 0, "how long a key is known (default: as the profile says)")
	fs.StringVar(&f.profile, "profile", profile.Draft07().Name, "how keys are honoured: "+strings.Join(profile.Names(), ", "))
	fs.StringVar(&f.bug, "bug", "", "play a broken server; list names them all, each with the check cases that catch it")
	fs.StringVar(&f.pointer, "operation-pointer", "", "JSON pointer to what names an operation in a body, such as /reference")
	fs.BoolVar(&f.require, "require-key", false, "answer 400 to a request without a key")
	return cmd
}

// config checks the flags.
func (f *mockFlags) config() (mockserver.Config, error) {
	p, err := findProfile(f.profile)
	if err != nil {
		return mockserver.Config{}, err
	}
	mix, err := mockserver.ParseFaults(f.faults)
	if err != nil {
		return mockserver.Config{}, fmt.Errorf("--faults: %w", err)
	}
	if f.window < 0 {
		return mockserver.Config{}, errors.New("--window is negative")
	}
	if _, _, err := net.SplitHostPort(f.addr); err != nil {
		return mockserver.Config{}, fmt.Errorf("--addr %s: want HOST:PORT", clip(f.addr))
	}
	cfg := mockserver.Config{
		Profile: p, Mix: mix, Seed: f.seed, Window: f.window, Bug: f.bug, OperationPointer: f.pointer, RequireKey: f.require,
	}
	return cfg, cfg.Validate()
}

func (f *mockFlags) run(ctx context.Context, s streams) error {
	if f.bug == "list" {
		return listBugs(s.out)
	}
	cfg, err := f.config()
	if err != nil {
		return err
	}
	server := mockserver.New(cfg)
	if err := server.Listen(f.addr); err != nil {
		return err
	}
	say(s.out, "listening on %s", server.URL())
	<-ctx.Done()
	l := server.Ledger().Snapshot()
	say(s.err, "%s, %s, %s, %s", count(l.Sends, "send"), count(l.Effects, "effect"), count(len(l.Keys), "key"), count(len(l.Violations), "violation"))
	for _, v := range l.Violations {
		say(s.err, "%s", strings.Join(strings.Fields(v.Error()), " "))
	}
	return server.Close()
}

// listBugs names the broken servers.
func listBugs(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	for _, b := range mockserver.Bugs() {
		_, _ = fmt.Fprintf(w, "%s\t%s (%s)\n", b.Name, b.Description, strings.Join(b.Cases, ", ")) // Flush gives the error
	}
	return w.Flush()
}
