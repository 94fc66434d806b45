# debian: python3-igraph
import igraph

ring = igraph.Graph.Ring(20)
assert ring.diameter() == 10 and ring.get_shortest_paths(0, 5)[0] == [0, 1, 2, 3, 4, 5]
graph = igraph.Graph.Full(5) + igraph.Graph.Full(4)
assert graph.vcount() == 9 and len(graph.connected_components()) == 2
assert abs(sum(graph.pagerank()) - 1) < 1e-9
