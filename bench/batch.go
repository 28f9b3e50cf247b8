package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp"
)

// batchWorkers is the number of requests at a time, of the batch and of the programs beside it.
const batchWorkers = 64

// batchColumns is the header row of the file.
const batchColumns = "user,order,amount,currency,note\n"

// batchRun is the measurement of one program over a file, from the start of its process to the end.
type batchRun struct {
	rate float64 // rows a second
	cpu  float64 // processor time of the program for a row, in µs; other load on the machine hardly changes it
	peak float64 // anonymous memory at its peak, in MB
}

// batchCase is one load, with the target of the batch: its ratio to the rate of a program with the same rows.
type batchCase struct {
	delay  time.Duration // of the server
	rows   int
	peer   string // "plain" or "do"
	target float64
}

// runBatch measures the command `oncehttp batch` on whole files: process start, survey, journal and output included.
// For comparison a program sends the same rows with net/http alone, and with Do alone.
func runBatch(b *bench) error {
	command := filepath.Join(b.dir, "oncehttp")
	build := exec.CommandContext(b, "go", "build", "-o", command, "./cmd/oncehttp")
	build.Dir = ".." // the main module
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the command: %w\n%s", err, out)
	}
	server, err := startServer(b)
	if err != nil {
		return err
	}
	defer server.stop()
	for _, c := range []batchCase{ // the server's delay, the rows, the program to compare with, and the least share of its rate
		{delayUsual, cmp.Or(b.rows, fullOrTiny(b, 12_000, 200)), "plain", 0.9},
		{0, cmp.Or(b.rows, fullOrTiny(b, 60_000, 300)), "do", 0.85},
	} {
		if err := runBatchCase(b, command, server, c); err != nil {
			return err
		}
	}
	return nil
}

// runBatchCase alternates the batch, its rerun, and the two programs over one file, and records figures and targets. command is
// the path of the oncehttp command. Each round has new journals. The rerun has the batch's journal and finds every row done there. c.peer is the program to
// compare with, c.target the least share of its rate. peaks are those of the memory.
func runBatchCase(b *bench, command string, server *server, c batchCase) error {
	file := filepath.Join(b.dir, "rows.csv")
	if err := writeRows(file, c.rows); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	url := server.payURL(c.delay)
	group := fmt.Sprintf("%d rows, %d ms server, %d workers", c.rows, c.delay.Milliseconds(), batchWorkers)
	rates, cpus, peaks := map[string]samples{}, map[string]samples{}, map[string]samples{}
	for range b.rounds {
		journal := filepath.Join(b.dir, "batch.db")
		batch := []string{command, "batch", file, "--url", url, "--key", "order:{user}:{order}", "--journal", journal,
			"--workers", strconv.Itoa(batchWorkers), "--quiet", "--new-journal"} // the journal of Do beside it has the same keys
		for _, run := range []struct {
			name string
			args []string
		}{
			{"plain", []string{self, "role-rows", "plain", file, url}},
			{"do", []string{self, "role-rows", "do", file, url, filepath.Join(b.dir, "do.db")}},
			{"batch", batch},
			{"rerun", batch},
		} {
			did, err := timeProgram(b, c.rows, run.args)
			if err != nil {
				return fmt.Errorf("%s: %w", run.name, err)
			}
			rates[run.name], peaks[run.name] = append(rates[run.name], did.rate), append(peaks[run.name], did.peak)
			cpus[run.name] = append(cpus[run.name], did.cpu)
		}
		if err := errors.Join(os.Remove(journal), os.Remove(filepath.Join(b.dir, "do.db"))); err != nil {
			return err
		}
	}
	for _, line := range []struct{ name, about string }{
		{"plain", "net/http alone"}, {"do", "Do with a bolt journal"}, {"batch", "oncehttp batch"}, {"rerun", "oncehttp batch, once more: nothing is sent"},
	} {
		b.add(group, line.about, "rows/s", rates[line.name])
		b.add(group, line.about, "of net/http", rates[line.name].over(rates["plain"]))
		b.add(group, line.about, "CPU µs a row", cpus[line.name])
		b.add(group, line.about, "anonymous memory, MB", peaks[line.name])
	}
	b.atLeast(group+": oncehttp batch of "+map[string]string{"plain": "net/http alone", "do": "Do alone"}[c.peer], "", c.target,
		rates["batch"].over(rates[c.peer]))
	if c.delay == 0 {
		b.atLeast("a full rerun from the journal", " rows/s", 100_000, rates["rerun"])
	}
	return nil
}

// writeRows writes a CSV file of n payments, each with a key of its own, as the input of the measured programs.
func writeRows(path string, n int) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	_, err = w.WriteString(batchColumns)
	for i := range int64(n) {
		if err != nil {
			break
		}
		user, order := businessParts(i)
		_, err = fmt.Fprintf(w, "%s,%s-%d,4200,eur,as agreed\n", user, order, i)
	}
	return errors.Join(err, w.Flush(), f.Close())
}

// timeProgram runs a program to its end, drops its output, and measures it: rows a second, processor time a row, and its largest memory. A failed program is an
// error with the text of its standard error.
func timeProgram(ctx context.Context, rows int, args []string) (batchRun, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return batchRun{}, err
	}
	stop := watchMemoryOf(cmd.Process.Pid)
	err := cmd.Wait()
	took := time.Since(began)
	if err != nil {
		return batchRun{}, fmt.Errorf("%w\n%s", err, stderr.String())
	}
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return batchRun{rate: float64(rows) / took.Seconds(), cpu: float64(cpu.Microseconds()) / float64(rows), peak: float64(stop()) / 1e6}, nil
}

// rowsRole is the program for comparison: it sends each row of a CSV file as a JSON object, by batchWorkers workers, and prints
// a line for each answer. Arguments: plain or do, the file, the URL, and for do the journal.
func rowsRole(args []string) error {
	send, done, err := rowSender(args)
	if err != nil {
		return err
	}
	f, err := os.Open(args[1])
	if err != nil {
		return err
	}
	defer f.Close()
	rows := make(chan map[string]string, batchWorkers)
	out := bufio.NewWriter(os.Stdout)
	var mu sync.Mutex
	failed := make([]error, batchWorkers)
	var wg sync.WaitGroup
	for w := range batchWorkers {
		wg.Go(func() {
			for row := range rows {
				err := send(row)
				mu.Lock()
				fmt.Fprintln(out, row["order"], err)
				mu.Unlock()
				failed[w] = errors.Join(failed[w], err)
			}
		})
	}
	err = readRows(f, rows)
	close(rows)
	wg.Wait()
	return errors.Join(append(failed, err, out.Flush(), done())...)
}

// readRows sends each row of a CSV file to rows, by the names of its columns. It does not close rows.
func readRows(f io.Reader, rows chan<- map[string]string) error {
	r := csv.NewReader(bufio.NewReader(f))
	names, err := r.Read()
	for err == nil {
		var cells []string
		if cells, err = r.Read(); err == nil {
			row := make(map[string]string, len(names))
			for i, name := range names {
				row[name] = cells[i]
			}
			rows <- row
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// rowSender returns a function that sends one row, safe for concurrent use, and done, to be called at the end (it closes the client). args[0] is the way: plain
// by net/http alone, do by oncehttp with a journal at args[3]; args[2] is the URL.
func rowSender(args []string) (send func(map[string]string) error, done func() error, err error) {
	request := func(row map[string]string) (*http.Request, error) {
		body, err := json.Marshal(row)
		if err != nil {
			return nil, err
		}
		req, err := http.NewRequest(http.MethodPost, args[2], strings.NewReader(string(body)))
		if err == nil {
			req.Header.Set("Content-Type", "application/json")
		}
		return req, err
	}
	if args[0] == "plain" {
		client := &http.Client{Transport: newPool()}
		return func(row map[string]string) error {
			req, err := request(row)
			if err != nil {
				return err
			}
			return consume(client.Do(req))
		}, func() error { return nil }, nil
	}
	client, err := oncehttp.Open(args[3], oncehttp.Config{Transport: newPool()})
	if err != nil {
		return nil, nil, err
	}
	orders := oncehttp.NewScope("order")
	return func(row map[string]string) error {
		req, err := request(row)
		if err != nil {
			return err
		}
		return consume(client.DoKey(req, orders.Key(row["user"], row["order"])))
	}, client.Close, nil
}
