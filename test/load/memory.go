package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tollgate-dev/tollgate/test/instance"
)

// memoryCommand is the argument with which this program measures the memory of
// the rate limit service's processes.
const memoryCommand = "memory"

// measureMemory prints the memory of processes with many counters and with many rules, and their
// start times.
func measureMemory(args []string) (err error) {
	flags := flag.NewFlagSet(memoryCommand, flag.ExitOnError)
	counters := flags.Int("counters", 1_000_000, "live counters, in hundreds")
	rules := flags.Int("rules", 100_000, "rules")
	if err := flags.Parse(args); err != nil {
		return err
	}
	b := &bench{}
	if b.dir, err = os.MkdirTemp("", "tollgate-memory-"); err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(b.dir) }() // a temporary folder; the system removes what is left
	defer b.stopAll()
	if err := instance.Build(".", b.dir, false, "cmd/tollgate"); err != nil {
		return err
	}
	few, err := b.startAlone("10 rules", formatRules(10, formatValue))
	if err != nil {
		return err
	}
	if err := printMemory(few, "10 rules"); err != nil {
		return err
	}
	many, err := b.startAlone("many rules", formatRules(*rules, formatValue))
	if err != nil {
		return err
	}
	if err := printMemory(many, fmt.Sprintf("%d rules", *rules)); err != nil {
		return err
	}
	if err := fillCounters(few, *counters); err != nil {
		return err
	}
	if err := printMemory(few, fmt.Sprintf("10 rules and %d counters", *counters)); err != nil {
		return err
	}
	for _, line := range b.starts {
		fmt.Println(line)
	}
	return nil
}

// fillCounters creates counters, a hundred with each call.
func fillCounters(i *instance.Instance, counters int) error {
	conn, err := grpc.NewClient(i.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("dial %s: %w", i.GRPC, err)
	}
	defer func() { _ = conn.Close() }() // no call follows
	client := ratelimit.NewRateLimitServiceClient(conn)
	const atOnce = 100
	for from := 0; from < counters; from += atOnce {
		r := &ratelimit.RateLimitRequest{Domain: "bench", Descriptors: make([]*common.RateLimitDescriptor, atOnce)}
		for n := range r.Descriptors {
			r.Descriptors[n] = newDescriptor("user", "user-"+strconv.Itoa(from+n), "path", formatValue(n%10))
		}
		answer, err := client.ShouldRateLimit(context.Background(), r)
		if err != nil {
			return fmt.Errorf("count: %w", err)
		}
		if answer.Statuses[0].GetCurrentLimit() == nil {
			return errors.New("the response has no limit: the rules are not in force")
		}
	}
	return nil
}

var residentMemory = regexp.MustCompile(`(?m)^Vm(RSS|HWM):\s*(\d+) kB`)

// printMemory prints the memory of a process once it no longer shrinks, and its peak.
func printMemory(i *instance.Instance, what string) error {
	now, most, err := readResident(i)
	for before := now + 1; err == nil && now < before; {
		before = now
		time.Sleep(2 * time.Second)
		now, most, err = readResident(i)
	}
	if err != nil {
		return err
	}
	fmt.Printf("%s: resident %d MiB, at most %d MiB so far\n", what, now, most)
	return nil
}

// readResident returns the present and the peak resident memory of a process, in MiB.
func readResident(i *instance.Instance) (now, most int, err error) {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(i.PID()) + "/status")
	if err != nil {
		return 0, 0, fmt.Errorf("read memory: %w", err)
	}
	sizes := map[string]int{}
	for _, line := range residentMemory.FindAllSubmatch(status, -1) {
		kilobytes, err := strconv.Atoi(string(line[2]))
		if err != nil {
			return 0, 0, fmt.Errorf("read memory: %w", err)
		}
		sizes[string(line[1])] = kilobytes >> 10
	}
	return sizes["RSS"], sizes["HWM"], nil
}
