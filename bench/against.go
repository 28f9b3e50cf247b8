package main

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// sideProgram is the source of the program that makes the load; it is compiled with each checkout.
//
//go:embed side/main.go
var sideProgram []byte

// side is one checkout under load, in a process of its own. startSide starts it; its user must call stop.
type side struct {
	name  string
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Reader // the process's standard output
}

// sideBurst is the answer of a side to one burst; see burst in side/main.go.
type sideBurst struct {
	Rate, P50, Allocs float64
	Error             string
}

// runAgainst compares this checkout with another. Three processes alternate: the
// other checkout, the other checkout a second time, and this one. The difference of the first two is noise, since their code is the same; only a greater loss
// of this one counts. A loss becomes a missed target in the report. The error says that something could not be measured.
func runAgainst(b *bench) error {
	here, err := moduleDir()
	if err != nil {
		return err
	}
	server, err := startServer(b)
	if err != nil {
		return err
	}
	defer server.stop()
	var sides []*side
	defer func() {
		for _, s := range sides {
			s.stop()
		}
	}()
	for _, c := range []struct{ name, checkout string }{{"the other", b.against}, {"the other again", b.against}, {"this", here}} {
		s, err := b.startSide(c.name, c.checkout, len(sides))
		if err != nil {
			return fmt.Errorf("%s checkout: %w", c.name, err)
		}
		sides = append(sides, s)
	}
	for _, c := range []cell{{delay: delayUsual, workers: 64}, {delay: delayUsual, workers: 256}, {workers: 64}, {workers: 1}} {
		if err := b.compareCell(c, sides, server.payURL(c.delay)); err != nil {
			return err
		}
	}
	return nil
}

// moduleDir returns the root folder of this checkout.
func moduleDir() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/oncehttp/oncehttp").Output()
	if err != nil {
		return "", fmt.Errorf("go list: %w (run it in bench)", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// startSide compiles the load with a checkout and starts it on a new journal, as one side of the comparison. number, unique in the run, names its
// folder. The process also ends with b. The caller must call stop.
func (b *bench) startSide(name, checkout string, number int) (*side, error) {
	checkout, err := filepath.Abs(checkout)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(b.dir, fmt.Sprintf("side-%d", number))
	program := filepath.Join(dir, "side")
	if err := writeSideModule(dir, checkout); err != nil {
		return nil, err
	}
	build := exec.CommandContext(b, "go", "build", "-mod=mod", "-o", program, ".")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build: %w: %s", err, out)
	}
	cmd := exec.CommandContext(b, program, filepath.Join(dir, "journal.db"))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &side{name, cmd, stdin, bufio.NewReader(stdout)}, cmd.Start()
}

// writeSideModule makes the folder dir with a module for the load: it has the requirements of the checkout (its go.mod without the first line, the module's
// name), and the checkout itself as oncehttp.
func writeSideModule(dir, checkout string) error {
	mod, err := os.ReadFile(filepath.Join(checkout, "go.mod"))
	if err != nil {
		return err
	}
	sum, err := os.ReadFile(filepath.Join(checkout, "go.sum"))
	if err != nil {
		return err
	}
	_, requires, found := strings.Cut(string(mod), "\n")
	if !found {
		return fmt.Errorf("%s/go.mod has one line", checkout)
	}
	own := fmt.Sprintf("module side\n%s\nrequire github.com/oncehttp/oncehttp v0.0.0\nreplace github.com/oncehttp/oncehttp => %s\n", requires, checkout)
	return errors.Join(
		os.Mkdir(dir, 0o700),
		os.WriteFile(filepath.Join(dir, "go.mod"), []byte(own), 0o600),
		os.WriteFile(filepath.Join(dir, "go.sum"), sum, 0o600),
		os.WriteFile(filepath.Join(dir, "main.go"), sideProgram, 0o600),
	)
}

// burst lets one side of the comparison, a process with one version of the code, send operations to url by this number of workers for the time d, and returns
// its figures. Only one burst may run at a time. After an error the side cannot be used any more.
func (s *side) burst(workers int, d time.Duration, url string) (r sideBurst, err error) {
	if _, err := fmt.Fprintln(s.stdin, workers, d, url); err != nil {
		return r, err
	}
	line, err := s.lines.ReadBytes('\n')
	if err != nil {
		return r, fmt.Errorf("%s ended: %w", s.name, err)
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return r, err
	}
	if r.Error != "" {
		return r, fmt.Errorf("%s: %s", s.name, r.Error)
	}
	return r, nil
}

// stop ends the process, by the end of its standard input, and waits for it.
func (s *side) stop() {
	_ = s.stdin.Close()
	_ = s.cmd.Wait()
}

// compareCell measures all sides under one load (a server delay and a number of workers), alternating, and records figures and a target. The first burst of a
// side in a round is not measured. sides are the other checkout, the same again (their difference is noise), and this one.
func (b *bench) compareCell(c cell, sides []*side, url string) error {
	d := fullOrTiny(b, 1500*time.Millisecond, 50*time.Millisecond)
	rates, p50, allocs := make([]samples, len(sides)), make([]samples, len(sides)), make([]samples, len(sides))
	for round := range b.rounds { // each begins with another side
		for k := range sides {
			i := (round + k) % len(sides)
			if _, err := sides[i].burst(c.workers, d/8, url); err != nil { // fills pools and caches
				return err
			}
			r, err := sides[i].burst(c.workers, d, url)
			if err != nil {
				return err
			}
			rates[i], p50[i], allocs[i] = append(rates[i], r.Rate), append(p50[i], r.P50), append(allocs[i], r.Allocs)
		}
	}
	const other, again, this = 0, 1, 2
	for i, s := range sides {
		b.add(c.group(), s.name, "ops/s", rates[i])
		b.add(c.group(), s.name, "p50 µs", p50[i])
		b.add(c.group(), s.name, "allocations/op", allocs[i].rounded())
		b.add(c.group(), s.name, "of the other", rates[i].over(rates[other]))
	}
	if c.workers == 1 {
		noise := p50[again].over(p50[other])
		// A time is better if it is smaller, so its limit is the inverse of the floor.
		b.atMost(c.group()+": p50, this of the other (limit: the noise)", "", 1/noiseFloor(noise), p50[this].over(p50[other]))
		return nil
	}
	noise := rates[again].over(rates[other])
	b.atLeast(c.group()+": this of the other (limit: the noise)", "", noiseFloor(noise), rates[this].over(rates[other]))
	return nil
}

// noiseFloor returns the lowest ratio of one binary against itself, at most 1. ratios are those of the same code measured twice. A ratio and its inverse count,
// since either process could have been the slower one.
func noiseFloor(ratios samples) float64 {
	floor := 1.0
	for _, r := range ratios {
		floor = min(floor, r, 1/r)
	}
	return floor
}
