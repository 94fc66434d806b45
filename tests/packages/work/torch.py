# debian: python3-torch
import torch

torch.manual_seed(1)
a = torch.randn(64, 64, dtype=torch.float64, requires_grad=True)
b = torch.randn(64, 64, dtype=torch.float64)
loss = (a @ b).pow(2).sum()
loss.backward()
assert torch.allclose(a.grad, 2 * (a.detach() @ b) @ b.T)

net = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)).double()
step = torch.optim.Adam(net.parameters(), lr=0.05)
x = torch.randn(128, 4, dtype=torch.float64)
y = x.sum(1, keepdim=True)
first = None
for _ in range(60):
    step.zero_grad()
    loss = torch.nn.functional.mse_loss(net(x), y)
    loss.backward()
    step.step()
    first = first or loss.item()
assert loss.item() < first / 4
