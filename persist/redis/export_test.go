package redis

import (
	"context"
	"net"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/oncehttp/oncehttp/persist"
)

// OpenEdited opens a journal one of whose scripts is edited: old, which must be in it, becomes new.
func OpenEdited(ctx context.Context, url string, opts Options, script, old, new string) (*Journal, error) {
	return opts.open(ctx, url, makeScripts(func(name string) string {
		s := text(name)
		if name != script {
			return s
		}
		if !strings.Contains(s, old) {
			panic(script + " does not contain " + old)
		}
		return strings.ReplaceAll(s, old, new)
	}))
}

// BucketKeys are the keys that scripts get for a bucket.
func BucketKeys(prefix string, number int) []string { return newBucket(prefix, number).keys }

// BucketOf is the number of the bucket that holds a record.
func (j *Journal) BucketOf(id persist.ID) int { return j.of(idOf(id)).number }

// ClaimAsRead claims a record as it was read, whatever has become of it since.
func (j *Journal) ClaimAsRead(ctx context.Context, rec persist.Record, owner string, now, until time.Time) (claimed int, err error) {
	c := claiming{j: j, now: now, until: until, owner: owner}
	id := idOf(rec.ID)
	ours, err := c.lease(ctx, []found{{entry: &entry{id: id}, bucket: j.of(id), rec: rec}})
	return len(ours), err
}

// The kinds of errors, by name.
func EffectOf(err error) string {
	return map[effect]string{inDoubt: "in doubt", broken: "broken", again: "again", none: "none"}[effectOf(err)]
}

// Clock is the index of a bucket's counter among its keys.
const Clock = int(clock)

// IDOf is what a record is called in its bucket.
func (j *Journal) IDOf(id persist.ID) string { return idOf(id) }

// Dialer makes connections that know whether their greeting is over.
func Dialer(o *goredis.Options) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return dialer(o)
}

// ClusterOptionsFor are the options of the journal's own client for a client of a cluster.
func ClusterOptionsFor(client *goredis.ClusterClient) *goredis.ClusterOptions {
	o, _ := Options{KeepKey: KeepForever}.checked()
	return o.atCluster(client.Options()).cluster()
}
