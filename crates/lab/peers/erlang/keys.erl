%% The key-value store in Erlang: the same three designs as in crates/lab/src/keys, for a comparison with the BEAM.
%%
%% The workload is in a file, so that it is the one that all designs get: for each client a length in bytes (64 bits,
%% little endian) and so many bytes of operations. An operation is one byte, 0 to read and 1 to write; the bucket and
%% the key, 32 bits each, little endian; and a value of 32 bytes, which a read does not use. The first file loads the
%% store. What clients read is written to a file in the same way: for each client a length, and the values one after
%% the other, each after a byte that is 0 if there was no value.
-module(keys).
-export([main/1]).

%% Design, number of buckets, files of first values and of operations, file of answers.
main([Design, BucketCount, FirstFile, OperationsFile, AnswersFile]) ->
    {ok, First} = file:read_file(FirstFile),
    {ok, Operations} = file:read_file(OperationsFile),
    Clients = clients(Operations),
    Stores = start(list_to_atom(Design), length(Clients)),
    [ok = request(hd(Stores), {create, Bucket}) || Bucket <- lists:seq(0, list_to_integer(BucketCount) - 1)],
    run_all(Stores, clients(First)),
    {_, _} = erlang:statistics(runtime),
    Start = erlang:monotonic_time(nanosecond),
    Answers = run_all(Stores, Clients),
    Wall = erlang:monotonic_time(nanosecond) - Start,
    {_, Cpu} = erlang:statistics(runtime),
    ok = file:write_file(AnswersFile, [[<<(iolist_size(A)):64/little>>, A] || A <- Answers]),
    io:format("~b ~b ~n", [Wall, Cpu * 1000000]),
    halt(0).

%% The operations of each client, decoded before the clock starts.
clients(<<Length:64/little, Bytes:Length/binary, Rest/binary>>) -> [decode(Bytes) | clients(Rest)];
clients(<<>>) -> [].

decode(<<0, Bucket:32/little, Key:32/little, _:32/binary, Rest/binary>>) ->
    [{read, Bucket, Key} | decode(Rest)];
decode(<<1, Bucket:32/little, Key:32/little, Value:32/binary, Rest/binary>>) ->
    [{write, Bucket, Key, binary:copy(Value)} | decode(Rest)];
decode(<<>>) -> [].

%% Runs all clients at the same time; their answers, in their order.
run_all(Stores, Clients) ->
    Self = self(),
    Run = fun({Store, Operations}) ->
        spawn_link(fun() -> Self ! {self(), client(Store, Operations, [])} end)
    end,
    Pids = lists:map(Run, lists:zip(Stores, Clients)),
    [receive {Pid, Answers} -> Answers end || Pid <- Pids].

client(_, [], Answers) -> lists:reverse(Answers);
client(Store, [{write, _, _, _} = Write | Rest], Answers) ->
    _ = request(Store, Write),
    client(Store, Rest, Answers);
client(Store, [Read | Rest], Answers) ->
    Answer = case request(Store, Read) of
        none -> <<0>>;
        Value -> [1, Value]
    end,
    client(Store, Rest, [Answer | Answers]).

%% Sends a request and waits for the reply.
request(Store, Request) ->
    Ref = make_ref(),
    Store ! {Request, {self(), Ref}},
    receive {Ref, Reply} -> Reply end.

reply({Pid, Ref}, Reply) -> Pid ! {Ref, Reply}.

%% The process that each client sends its requests to.
start(central, Clients) -> lists:duplicate(Clients, spawn_link(fun() -> central(#{}) end));
start(sharded, Clients) -> lists:duplicate(Clients, spawn_link(fun() -> forwarder(#{}, none) end));
start(worker, Clients) ->
    Registrar = spawn_link(fun() -> registrar(#{}, []) end),
    Workers = [spawn_link(fun() -> worker(#{}, Registrar) end) || _ <- lists:seq(1, Clients)],
    [Registrar ! {join, Worker} || Worker <- Workers],
    Workers.

%% One process with a map of maps.
central(Buckets) ->
    receive
        {{create, Bucket}, To} ->
            reply(To, ok),
            central(maps:merge(#{Bucket => #{}}, Buckets));
        {{read, Bucket, Key}, To} ->
            reply(To, maps:get(Key, maps:get(Bucket, Buckets, #{}), none)),
            central(Buckets);
        {{write, Bucket, Key, Value}, To} ->
            #{Bucket := Values} = Buckets,
            reply(To, true),
            central(Buckets#{Bucket := Values#{Key => Value}})
    end.

%% A process per bucket, behind this one, which caches the last bucket.
forwarder(Buckets, Last) ->
    receive
        {{create, Bucket}, To} ->
            New = maps:merge(#{Bucket => spawn_link(fun() -> bucket(#{}, none) end)}, Buckets),
            reply(To, ok),
            forwarder(New, Last);
        {Request, _} = Message ->
            Number = element(2, Request),
            Found = case Last of
                {Number, _} -> Last;
                _ -> {Number, maps:get(Number, Buckets)}
            end,
            element(2, Found) ! Message,
            forwarder(Buckets, Found)
    end.

%% A bucket, which caches the last value.
bucket(Values, Last) ->
    receive
        {{read, _, Key}, To} ->
            Value = case Last of
                {Key, Cached} -> Cached;
                _ -> maps:get(Key, Values, none)
            end,
            reply(To, Value),
            bucket(Values, {Key, Value});
        {{write, _, Key, Value}, To} ->
            reply(To, true),
            bucket(Values#{Key => Value}, {Key, Value})
    end.

%% A process per client, with the addresses of all buckets.
worker(Buckets, Registrar) ->
    receive
        {{create, _}, _} = Message ->
            Registrar ! Message,
            worker(Buckets, Registrar);
        {replicate, Bucket, Pid, From} ->
            From ! replicated,
            worker(Buckets#{Bucket => Pid}, Registrar);
        {Request, _} = Message ->
            maps:get(element(2, Request), Buckets) ! Message,
            worker(Buckets, Registrar)
    end.

%% Creates buckets and tells all workers.
registrar(Buckets, Workers) ->
    receive
        {join, Worker} -> registrar(Buckets, [Worker | Workers]);
        {{create, Bucket}, To} ->
            New = maps:merge(#{Bucket => spawn_link(fun() -> bucket(#{}, none) end)}, Buckets),
            [Worker ! {replicate, Bucket, maps:get(Bucket, New), self()} || Worker <- Workers],
            [receive replicated -> ok end || _ <- Workers],
            reply(To, ok),
            registrar(New, Workers)
    end.
