package redis

import (
	"context"
	"fmt"
	"strconv"

	goredis "github.com/redis/go-redis/v9"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/notify"
)

var _ persist.Notifier = (*Journal)(nil)

// deafAdvice is the advice if SUBSCRIBE works and nothing arrives.
const deafAdvice = "the server's users need the right to its channel, and a proxy has to pass on what is published"

// Notify implements [persist.Notifier]: it wakes the listeners of the journal in other processes, as something may have become due. It publishes over one of
// the journal's connections, and does not block.
func (j *Journal) Notify() {
	if j.wakes != nil {
		j.wakes.Notify()
	}
}

// Listen implements [persist.Notifier]: it calls heard at each notification, with nil, or with an error when it hears nothing any more, until ctx ends. All
// listeners of this journal share one connection, and Options.MaxConns does not count that.
func (j *Journal) Listen(ctx context.Context, heard func(err error)) error {
	if j.wakes == nil {
		return j.failed(persist.ErrClosed)
	}
	return j.wakes.Listen(ctx, heard)
}

// notifier makes the hub that sends the journal's notifications to other processes and hears theirs. Redis has the channels of all its databases in one
// place, and a cluster those of all its nodes: hence the number in the name of the channel.
func (j *Journal) notifier(prefix string, db int) *notify.Hub {
	channel := "{" + prefix + "}:wake:" + strconv.Itoa(db)
	return notify.New(notify.Config{
		Name: j.name, Within: j.limit / triesInLimit, Advice: deafAdvice, // the time for one try, and what to do if nothing arrives
		Send: func(ctx context.Context, message string) error { return j.publish(ctx, channel, message) },
		Connect: func(ctx context.Context) (notify.Line, error) {
			l := &subscription{j.client.Subscribe(ctx, channel)}
			// The first answer tells a denied subscription. Without a time limit of its own, ctx counts.
			if _, err := l.receive(ctx); err != nil {
				l.Close()
				return nil, err
			}
			return l, nil
		},
	})
}

// publish publishes a message. In a cluster it uses the node of the listeners; the library would use any node it was ever told of. After an error the client
// reads anew which node has which keys.
func (j *Journal) publish(ctx context.Context, channel, message string) error {
	cluster, ok := j.client.(*goredis.ClusterClient)
	if !ok {
		return j.client.Publish(ctx, channel, message).Err()
	}
	node, err := cluster.MasterForKey(ctx, channel)
	if err == nil {
		err = node.Publish(ctx, channel, message).Err()
	}
	if err != nil {
		j.reload(ctx)
	}
	return err
}

// subscription is a connection for listening.
type subscription struct{ *goredis.PubSub }

// receive waits for the server's next message. The library checks the end of a context only before it waits: so the end of ctx closes the subscription.
func (l *subscription) receive(ctx context.Context) (any, error) {
	defer context.AfterFunc(ctx, l.Close)()
	return l.ReceiveTimeout(ctx, 0)
}

// Next implements notify.Line: it returns the next message. The client library replaces a broken connection by itself, and subscribes again: a
// message may have been missed then, so that this is an error here.
func (l *subscription) Next(ctx context.Context) (string, error) {
	switch said, err := l.receive(ctx); said := said.(type) {
	case *goredis.Message:
		return said.Payload, err
	default:
		if err == nil {
			err = fmt.Errorf("the server said %v", said)
		}
		return "", err
	}
}

// Close implements notify.Line. It ends the listening.
func (l *subscription) Close() { _ = l.PubSub.Close() } // it is closed already, at most
