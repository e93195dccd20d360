"""draft"""
from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from saddleback.exact.bellman import Choice, Limits, Model
from saddleback.exact.evaluation import Evaluation, evaluate
from saddleback.exact.master import Master, best_reward, largest_slack
from saddleback.exact.policy_iteration import nothing_known, price

LOG = []
DEG=2

class Search:
    def __init__(self, model, b, share, part):
        self.model, self.b, self.share = model, b, share
        self.here = nothing_known(model)
        self.cols = []   # (actions, limits)
        self.low = np.zeros((0, 1+len(b)))
    def ask(self, q, target, incumbent):
        p = price(self.model, q, self.here, target, incumbent, self.share)
        self.here = p.found
        self.cols.append(p.found.actions)
        self.low = np.vstack([self.low, p.found.limits.low])
        return p

def solve(model, b, tol=1e-6, share=0.1, verbose=True, interp=True):
    s = Search(model, b, share, .1)
    m = len(b)
    s.share=0.
    cp = s.ask(np.array([0., 1.]), tol, -np.inf)
    s.share=share
    zeta = cp.found.limits.low[1]-b[0], cp.bound-b[0]
    LOG.append(('c', zeta))
    g = lambda f: float((f.limits.low[1]+f.limits.high[1])/2-b[0])
    pts = [(1.0, g(cp.found))]   # sigma, g
    H = model.discount.horizon
    rp = price(model, np.array([1., 0.]), s.here, tol, -np.inf if False else 0, 0.05)
    s.here = rp.found; s.cols.append(rp.found.actions); s.low=np.vstack([s.low, rp.found.limits.low])
    pts.append((0.0, g(rp.found)))
    best = rp.bound; 
    last_gap=np.inf; use_interp=interp
    for it in range(60):
        M = best_reward(s.low[:,0], s.low[:,1:]-b)
        gap = best - M.value
        LOG.append((it, gap, M.prices[1]))
        if gap <= tol: break
        lam = M.prices[1]
        how='master'
        if it>=1 and interp and gap < .5*last_gap:
            a = max((p for p in pts if p[1]<0), key=lambda p:p[0]); c=min((p for p in pts if p[1]>=0), key=lambda p:p[0])
            near = sorted(pts, key=lambda p: abs(p[1]))[:DEG+1]
            x=np.array([p[0] for p in near]); gg=np.array([p[1] for p in near])
            sg=sum(x[i]*np.prod([-gg[j]/(gg[i]-gg[j]) for j in range(len(x)) if j!=i]) for i in range(len(x)))
            if not a[0]<sg<c[0]: sg = a[0]-a[1]*(c[0]-a[0])/(c[1]-a[1]); how='secant'
            lam = sg/(1-sg); how='interp'
        last_gap=gap
        q = np.array([1., lam])
        inc = float((s.low@q).max())
        t=time.process_time()
        p = s.ask(q, 0.2*tol, inc)
        best = min(best, p.bound-lam*b[0])
        pts.append((lam/(1+lam), g(p.found)))
        LOG.append((how, lam, g(p.found), p.bound-p.found.limits.low@q, time.process_time()-t))
    return M, best
