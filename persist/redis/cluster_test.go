package redis_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	"github.com/oncehttp/oncehttp/persist/persisttest"
	"github.com/oncehttp/oncehttp/persist/redis"
)

// slots is how many slots a cluster has.
const slots = 16384

// cluster starts masters that share the slots evenly. They keep nothing on disk, and are quick.
func cluster(t *testing.T, n int) []*server {
	t.Helper()
	var nodes []*server
	ctx, buses := t.Context(), make([]string, n) // the ports on which they talk to each other
	for i := range n {
		_, buses[i] = freePort(t)
		nodes = append(nodes, start(t, "--cluster-enabled", "yes", "--cluster-port", buses[i], "--cluster-node-timeout", "5000"))
	}
	for i, node := range nodes {
		client := connect(t, node.url())
		if err := client.ClusterAddSlotsRange(ctx, i*slots/n, (i+1)*slots/n-1).Err(); err != nil {
			t.Fatal(err)
		}
		if err := client.Do(ctx, "cluster", "set-config-epoch", i+1).Err(); err != nil {
			t.Fatal(err)
		}
	}
	first := connect(t, nodes[0].url())
	for i, node := range nodes {
		host, port, _ := strings.Cut(node.address, ":")
		if err := first.Do(ctx, "cluster", "meet", host, port, buses[i]).Err(); i > 0 && err != nil {
			t.Fatal(err)
		}
	}
	for _, node := range nodes {
		node.joined(t, n)
	}
	return nodes
}

// joined waits until the node knows the whole cluster.
func (s *server) joined(t *testing.T, n int) {
	t.Helper()
	client := connect(t, s.url())
	info := ""
	for range 1000 {
		info = client.ClusterInfo(t.Context()).Val()
		if strings.Contains(info, "cluster_state:ok") && strings.Contains(info, fmt.Sprintf("cluster_size:%d\r", n)) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("the cluster does not come together: %s", info)
}

// TestCluster runs the suite on three masters. The URL names one that is down, too.
func TestCluster(t *testing.T) {
	t.Parallel()
	nodes := cluster(t, 3)
	at := nodes[0].url() + "?addr=" + nodes[1].address
	at = strings.Replace(at, nodes[0].address, "127.0.0.1:1", 1)
	persisttest.Run(t, persisttest.Harness{
		Cases:   sqltest.Part(persisttest.Names(), 0, 6),
		Durable: true, Spread: true,
		New: func(string) (func() (persist.Journal, error), error) {
			opts := redis.Options{Prefix: sqltest.Name(), KeepKey: redis.KeepForever, AllowVolatile: true}
			return func() (persist.Journal, error) { return redis.Open(context.Background(), at, opts) }, nil
		},
	})
}

// TestResharding moves the buckets of a journal that one master has to another, one after the
// other, while callers begin and finish.
func TestResharding(t *testing.T) {
	t.Parallel()
	nodes := cluster(t, 2)
	opts := redis.Options{Prefix: sqltest.Name(), KeepKey: redis.KeepForever, AllowVolatile: true}
	j := open(t, nodes[0].url(), opts)
	var work sync.WaitGroup
	moved := make(chan struct{})
	begun := make([]int, 4)
	for w := range begun {
		work.Go(func() {
			for over := false; !over; begun[w]++ {
				select {
				case <-moved:
					over = true
				default:
				}
				rec, created, err := j.Begin(t.Context(), sqltest.Record("moved", fmt.Sprintf("%d of %d", begun[w], w)))
				if err == nil && created {
					err = j.Finish(t.Context(), sqltest.Finished(rec))
				}
				if err != nil || !created {
					t.Errorf("while slots are moved: created %t, error %v", created, err)
					return
				}
			}
		})
	}
	moves := 0
	for number := range 16 {
		if keys := redis.BucketKeys(opts.Prefix, number); slot(keys[0]) < slots/2 {
			move(t, nodes[0], nodes[1], keys)
			moves++
		}
	}
	close(moved)
	work.Wait()
	want, got := begun[0]+begun[1]+begun[2]+begun[3], 0
	for rec, err := range j.List(t.Context(), persist.Query{AllAccounts: true}) {
		if err != nil || rec.State != persist.StateConfirmed {
			t.Errorf("%q is %v, error %v", rec.Key, rec.State, err)
		}
		got++
	}
	if got != want || want < 16 || moves == 0 {
		t.Errorf("after %d moves %d records are there, %d were begun", moves, got, want)
	}
}

// move moves the slot of some keys from one master to another.
func move(t *testing.T, fromNode, toNode *server, keys []string) {
	t.Helper()
	ctx := t.Context()
	number := slot(keys[0])
	from, to := connect(t, fromNode.url()), connect(t, toNode.url())
	host, port, _ := strings.Cut(toNode.address, ":")
	fromID, toID := from.Do(ctx, "cluster", "myid").Val(), to.Do(ctx, "cluster", "myid").Val()
	migrate := []any{"migrate", host, port, "", 0, 5000, "auth", "hunter2", "keys"}
	for _, key := range keys {
		migrate = append(migrate, key)
	}
	for _, step := range []func() *goredis.Cmd{
		func() *goredis.Cmd { return to.Do(ctx, "cluster", "setslot", number, "importing", fromID) },
		func() *goredis.Cmd { return from.Do(ctx, "cluster", "setslot", number, "migrating", toID) },
		func() *goredis.Cmd { return from.Do(ctx, migrate...) },
		func() *goredis.Cmd { return to.Do(ctx, "cluster", "setslot", number, "node", toID) },
		func() *goredis.Cmd { return from.Do(ctx, "cluster", "setslot", number, "node", toID) },
	} {
		if err := step().Err(); err != nil && !errors.Is(err, goredis.Nil) {
			t.Fatal(err)
		}
	}
}
