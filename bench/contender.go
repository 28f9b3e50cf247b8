package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	"go.etcd.io/bbolt"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// contender is one way to do an operation. Its user must call close, if that is not nil.
type contender struct {
	name  string
	do    func(url string, n int64) error // sends payment n; safe for concurrent use
	flush func() error                    // makes all operations durable; nil: they are already, or need not be
	close func() error
	stats func() bolt.Stats // of its bolt journal; nil: it has none

	missing bool // it cannot be measured here, and name says why; the functions are nil
}

// burst is the measurement of a contender over some time.
type burst struct {
	rate  float64         // operations per second
	cpu   time.Duration   // of this process, per operation
	times []time.Duration // of each operation
}

// drive lets workers do operations with one of the compared programs for the time d, one after another each, and waits until all are durable (flush;
// nil if they need no wait). It returns the rate, the processor time and the time of each operation. next holds the number of the latest payment and is
// advanced, so that no payment is made twice. The first error ends all workers and is returned.
func (l *contender) drive(ctx context.Context, workers int, d time.Duration, url string, next *atomic.Int64) (burst, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	runtime.GC()
	times := make([][]time.Duration, workers)
	var wg sync.WaitGroup
	began, busy := time.Now(), processorTime()
	for w := range workers {
		wg.Go(func() {
			for last := began; last.Sub(began) < d && ctx.Err() == nil; {
				if err := l.do(url, next.Add(1)); err != nil {
					cancel(fmt.Errorf("%s: %w", l.name, err))
					return
				}
				now := time.Now()
				times[w] = append(times[w], now.Sub(last))
				last = now
			}
		})
	}
	wg.Wait()
	if l.flush != nil {
		if err := l.flush(); err != nil {
			return burst{}, fmt.Errorf("%s: %w", l.name, err)
		}
	}
	took, busy := time.Since(began), processorTime()-busy
	var b burst
	for _, t := range times {
		b.times = append(b.times, t...)
	}
	b.rate = float64(len(b.times)) / took.Seconds()
	b.cpu = busy / time.Duration(max(1, len(b.times)))
	return b, context.Cause(ctx)
}

// plainContender returns the comparison without any protection: requests by net/http alone.
func plainContender() *contender {
	pool := newPool()
	client := &http.Client{Transport: pool}
	return &contender{
		name: "plain net/http",
		do: func(url string, n int64) error {
			req, err := newPayment(url, n)
			if err != nil {
				return err
			}
			return consume(client.Do(req))
		},
		close: func() error { pool.CloseIdleConnections(); return nil },
	}
}

// onceContender returns oncehttp on a new bolt journal in the folder dir, as one of the compared programs. With ownKeys each operation has a business
// key, not in the order of time; otherwise its key is generated. With same, all operations send the same bytes: they must not wait for each other. stats tells
// the syncs of the journal.
func onceContender(dir string, ownKeys, same bool) (*contender, error) {
	name := "oncehttp + bolt"
	if !ownKeys {
		name = "oncehttp + bolt, generated keys"
	}
	if same {
		name += ", the same bytes"
	}
	journal, err := bolt.Open(filepath.Join(dir, fmt.Sprintf("once-%t-%t.db", ownKeys, same)), bolt.Options{})
	if err != nil {
		return nil, err
	}
	pool := newPool()
	client, err := oncehttp.New(oncehttp.Config{Journal: journal, Transport: pool})
	if err != nil {
		return nil, err
	}
	orders := oncehttp.NewScope("order")
	return &contender{
		name: name,
		do: func(url string, n int64) error {
			number := n
			if same {
				number = 1
			}
			req, err := newPayment(url, number)
			switch {
			case err != nil:
				return err
			case ownKeys:
				return consume(client.DoKey(req, orders.Key(businessParts(n))))
			}
			return consume(client.Do(req))
		},
		close: func() error {
			defer pool.CloseIdleConnections()
			if err := client.Close(); err != nil {
				return err
			}
			return journal.Close()
		},
		stats: journal.Stats,
	}, nil
}

// businessParts returns the names of a user and an order for payment n: unique for 66 million n in a row, and in no order of time (the two factors are prime to
// the numbers of names). The names exist beforehand, as in an application, so that making them is not measured.
func businessParts(n int64) (user, order string) {
	return users[uint64(n)*389%uint64(len(users))], orders[uint64(n)*40503%uint64(len(orders))]
}

// Their numbers have no common divisor, so that no pair occurs twice.
var users, orders = ids("u", 1021), ids("o", 1<<16)

// ids returns n names: the prefix with the numbers from 0 on.
func ids(prefix string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = prefix + strconv.Itoa(i)
	}
	return list
}

// scatter spreads numbers over 63 bits without order, by the multiplications and shifts of a usual hash. It is no source of randomness: equal n give
// equal results.
func scatter(n int64) uint64 {
	x := uint64(n) * 0x9e3779b97f4a7c15
	x = (x ^ x>>32) * 0xd6e8feb86659fd93
	return (x ^ x>>32) >> 1
}

// naiveContender returns the usual code of applications, as one of the compared programs: go-retryablehttp between two bbolt updates, one that writes the
// operation down and one that adds its answer; each waits for the disk.
func naiveContender(dir string) (*contender, error) {
	db, err := bbolt.Open(filepath.Join(dir, "naive.db"), 0o600, nil)
	if err != nil {
		return nil, err
	}
	bucket := []byte("operations")
	err = db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucket(bucket)
		return err
	})
	if err != nil {
		return nil, err
	}
	put := func(key, value string) error {
		return db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucket).Put([]byte(key), []byte(value)) })
	}
	pool := newPool()
	client := retryablehttp.NewClient()
	client.Logger = nil
	client.HTTPClient.Transport = pool
	standard := client.StandardClient()
	orders := oncehttp.NewScope("order")
	return &contender{
		name: "go-retryablehttp + bbolt.Update before and after",
		do: func(url string, n int64) error {
			req, err := newPayment(url, n)
			if err != nil {
				return err
			}
			key := string(orders.Key(businessParts(n)))
			req.Header.Set("Idempotency-Key", key)
			if err := put(key, recordFiller); err != nil {
				return err
			}
			if err := consume(standard.Do(req)); err != nil {
				return err
			}
			return put(key, recordFiller+answerBody)
		},
		close: func() error { pool.CloseIdleConnections(); return db.Close() },
	}, nil
}

// rawContender returns the fastest program possible with the promise of oncehttp, that an operation is durable before it is sent, as the limit for
// comparison. Its log has no index: an operation waits until its first entry is durable, and not for the second, its answer.
func rawContender(dir string) (*contender, error) {
	log, err := openRawLog(filepath.Join(dir, "raw.log"), fdatasync)
	if err != nil {
		return nil, err
	}
	plain := plainContender()
	return &contender{
		name: "raw group-committed log (the limit)",
		do: func(url string, n int64) error {
			if err := log.append([]byte(recordFiller)); err != nil {
				return err
			}
			if err := plain.do(url, n); err != nil {
				return err
			}
			log.later([]byte(answerBody))
			return nil
		},
		close: func() error { _ = plain.close(); return log.close() },
	}, nil
}

// closeContenders closes the compared programs and removes the folder dir of their files.
func closeContenders(contenders []*contender, dir string) {
	for _, l := range contenders {
		if l.close != nil {
			_ = l.close()
		}
	}
	_ = os.RemoveAll(dir)
}
