// Command side puts one checkout of oncehttp under load, for the -against flag of
// bench. It uses only functions of every version: Open, DoKey, NewScope and Close.
// It reads one line for each burst (workers, duration, URL) from standard input,
// and answers each with one line of JSON. It ends with its input.
//
//	side JOURNAL
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp"
)

// burst holds the figures of one burst.
type burst struct {
	Rate   float64 // operations per second
	P50    float64 // the median time of an operation, in microseconds
	Allocs float64 // per operation, net/http included
	Error  string  // of the first operation that failed; empty: none, and the figures count
}

// main runs loads with the checkout of oncehttp that it was built with, and prints the figures of each as JSON. The benchmark builds this program with
// two checkouts, to compare them.
func main() {
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, "side:", err)
		os.Exit(1)
	}
}

// serve reads lines from standard input, each with a number of workers, a duration and a URL, runs that load, and prints its figures. The argument of the
// program is the path of its journal. It returns at the end of standard input, or at the first bad line.
func serve() error {
	if len(os.Args) != 2 {
		return errors.New("usage: side JOURNAL")
	}
	pool := http.DefaultTransport.(*http.Transport).Clone()
	pool.Proxy, pool.MaxIdleConns, pool.MaxIdleConnsPerHost = nil, 0, 256
	client, err := oncehttp.Open(os.Args[1], oncehttp.Config{Transport: pool})
	if err != nil {
		return err
	}
	defer client.Close()
	ballast := make([]byte, 64<<20) // live heap, as a program of some size has
	defer runtime.KeepAlive(ballast)
	operations := 0
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) != 3 {
			return fmt.Errorf("want workers, duration and URL, got %q", lines.Text())
		}
		workers, err := strconv.Atoi(words[0])
		if err != nil {
			return err
		}
		d, err := time.ParseDuration(words[1])
		if err != nil {
			return err
		}
		b := load(client, operations, workers, d, words[2])
		operations += 1 << 24 // more than one burst can do, so that each has new keys
		if err := json.NewEncoder(os.Stdout).Encode(b); err != nil {
			return err
		}
	}
	return lines.Err()
}

// load lets workers do operations one after another for the time d, and returns the figures. The keys are numbered from first on, each worker with numbers of
// its own. A failed operation ends its worker, and the figures are then an error alone.
func load(client *oncehttp.Client, first, workers int, d time.Duration, url string) burst {
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	times, errs := make([][]time.Duration, workers), make([]error, workers)
	var wg sync.WaitGroup
	began := time.Now()
	for w := range workers {
		wg.Go(func() {
			for last := began; last.Sub(began) < d; {
				if errs[w] = pay(client, url, first+len(times[w])*workers+w); errs[w] != nil {
					return
				}
				now := time.Now()
				times[w] = append(times[w], now.Sub(last))
				last = now
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	all := slices.Concat(times...)
	if err := errors.Join(errs...); err != nil || len(all) == 0 {
		return burst{Error: fmt.Sprintf("%d operations, then %v", len(all), err)}
	}
	slices.Sort(all)
	return burst{
		Rate: float64(len(all)) / took.Seconds(), P50: float64(all[len(all)/2].Nanoseconds()) / 1e3,
		Allocs: float64(after.Mallocs-before.Mallocs) / float64(len(all)),
	}
}

// pay does operation n, and reads its answer to the end. Any status but 201 is an error.
func pay(client *oncehttp.Client, url string, n int) error {
	body := fmt.Sprintf(`{"amount":4200,"currency":"eur","order":"%d","note":"as agreed"}`, n)
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	// The low bits come first, so that keys are in no order of time.
	key := oncehttp.NewScope("order").Key(strconv.Itoa(n%1021), strconv.Itoa(n))
	resp, err := client.DoKey(req, key)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusCreated {
		return fmt.Errorf("answered %s", resp.Status)
	}
	return nil
}
