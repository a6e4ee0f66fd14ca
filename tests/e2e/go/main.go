// Runs commands by go-redis: go-redis-client HOST PORT PROTOCOL PASSWORD
//
// PROTOCOL is `default`, 2 or 3. Standard input has {"one_by_one": [[WORD...]...], "pipelined":
// [...]}; standard output gets the replies in the same places, an error as {"error": TEXT}.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"

	"github.com/redis/go-redis/v9"
)

type work struct {
	OneByOne  [][]interface{} `json:"one_by_one"`
	Pipelined [][]interface{} `json:"pipelined"`
}

type replies struct {
	Version   string        `json:"version"`
	OneByOne  []interface{} `json:"one_by_one"`
	Pipelined []interface{} `json:"pipelined"`
}

// Something that JSON can say.
func plain(reply interface{}) interface{} {
	switch reply := reply.(type) {
	case map[interface{}]interface{}:
		named := map[string]interface{}{}
		for name, value := range reply {
			named[fmt.Sprint(name)] = plain(value)
		}
		return named
	case []interface{}:
		list := make([]interface{}, len(reply))
		for i, item := range reply {
			list[i] = plain(item)
		}
		return list
	default:
		return reply
	}
}

func result(command *redis.Cmd) (interface{}, error) {
	reply, err := command.Result()
	var said redis.Error
	if err != nil && errors.As(err, &said) {
		return map[string]string{"error": said.Error()}, nil
	}
	return plain(reply), err
}

func run(host, port, protocol, password string) error {
	var asked work
	if err := json.NewDecoder(os.Stdin).Decode(&asked); err != nil {
		return err
	}
	options := &redis.Options{Addr: net.JoinHostPort(host, port), Password: password}
	if protocol != "default" {
		number, err := strconv.Atoi(protocol)
		if err != nil {
			return err
		}
		options.Protocol = number
	}
	client := redis.NewClient(options)
	defer client.Close()
	ctx := context.Background()
	answered := replies{Version: redis.Version(), OneByOne: []interface{}{}, Pipelined: []interface{}{}}
	for _, words := range asked.OneByOne {
		reply, err := result(client.Do(ctx, words...))
		if err != nil {
			return err
		}
		answered.OneByOne = append(answered.OneByOne, reply)
	}
	pipeline := client.Pipeline()
	commands := []*redis.Cmd{}
	for _, words := range asked.Pipelined {
		commands = append(commands, pipeline.Do(ctx, words...))
	}
	// Its error is the first of the commands', which are looked at one by one.
	_, _ = pipeline.Exec(ctx)
	for _, command := range commands {
		reply, err := result(command)
		if err != nil {
			return err
		}
		answered.Pipelined = append(answered.Pipelined, reply)
	}
	return json.NewEncoder(os.Stdout).Encode(answered)
}

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: go-redis-client HOST PORT PROTOCOL PASSWORD")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
